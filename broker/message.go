package broker

// message is the in-memory state of a message that is in the window, in flight or was received before. Times are
// readings of the clock unless marked as stamps.
type message struct {
	key    int64
	origin int64 // the key its message ID is derived from
	sent   int64 // stamp
	due    int64 // end of the delay; 0 for none
	until  int64 // visibility deadline
	index  int   // in the deadline heap; -1 if not in it

	content *record // cached row, or nil
	group   *group  // FIFO queues only
	tenant  *tenant // standard queues only; nil for none
	size    int32   // attributes and body in bytes

	arrived    int32  // receive count on arrival in this queue
	count      int32  // receives; the serial of the latest one
	unread     int32  // receives that do not count
	epoch      uint32 // epoch of the store at the latest receive
	first      int64  // stamp of the first receive
	receivedAt int64  // the latest receive
	uncounted  bool   // the latest receive does not count

	inFlight bool   // hidden by a receive
	leaving  bool   // a request is about to remove it
	gone     bool   // deleted, moved or expired
	queued   bool   // in the delivery order
	holds    bool   // blocks its group
	stored   bool   // has a row in receipts, and perhaps in attempts
	failed   bool   // an attempt was recorded
	dirty    bool   // in the list of receives to store
	damaged  bool   // fails its checksum; see withhold
	claimed  bool   // placeholder that reserves a message not in memory
	unposted bool   // if the process is killed, the latest receive counts only once the message was posted
	mark     uint32 // slot in receiveMarks; 0 for none
}

// received returns the receive count. The serial (count) also includes receives that do not count, so that no two
// receives have the same receipt handle.
func (m *message) received() int32 { return m.count - m.unread }

// fresh reports whether the message was never received in this queue. Fresh messages are only in the window and can
// be reread from the store.
func (m *message) fresh() bool { return m.epoch == 0 }

// uncount makes the latest receive not count. Repeated calls have no effect.
func (m *message) uncount() {
	if m.uncounted {
		return
	}
	m.uncounted = true
	m.unread++
	if m.received() == 0 {
		m.first = 0
	}
}

// newest reports whether a receipt is from the latest known receive. A receive just before the process was killed may
// not have been stored; then a receipt of a later epoch is newer.
func (m *message) newest(of receipt) bool {
	if of.epoch == m.epoch {
		return of.serial == uint32(m.count)
	}
	return of.epoch > m.epoch
}

// idle reports whether the message can be delivered, now or later.
func (m *message) idle() bool { return !m.gone && !m.leaving && !m.damaged }

// ring is a queue of messages that reuses its memory.
type ring struct {
	items []*message
	head  int
	n     int
}

func (r *ring) push(m *message) {
	if r.n == len(r.items) {
		grown := make([]*message, max(16, 2*len(r.items)))
		for i := range r.n {
			grown[i] = r.items[(r.head+i)%len(r.items)]
		}
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.n)%len(r.items)] = m
	r.n++
}

// pop removes the oldest message; nil if empty.
func (r *ring) pop() *message {
	if r.n == 0 {
		return nil
	}
	m := r.items[r.head]
	r.items[r.head] = nil
	r.head = (r.head + 1) % len(r.items)
	r.n--
	if r.n == 0 && len(r.items) > 1024 {
		r.items, r.head = nil, 0
	}
	return m
}

// deliveryOrder holds the visible messages in memory and chooses the next to deliver: [standardOrder] or [fifoOrder].
// The queue's lock guards it.
type deliveryOrder interface {
	// add appends a fresh message. Keys increase between resets, except for delayed messages of a standard queue.
	add(m *message)
	// requeue makes a taken message visible again.
	requeue(m *message)
	// forget removes a taken or queued message that is gone.
	forget(m *message)
	// withdraw removes a visible message that is about to be in flight.
	withdraw(m *message)
	// resume restores a message that was in flight before the store was opened.
	resume(m *message)
	// take removes messages and returns those for which decide returns deliverIt, up to the limit. It calls decide
	// once per removed message.
	take(t takeRequest) []*message
	// reset removes the fresh messages, which will be added again, and calls drop for each.
	reset(drop func(m *message))
	// size returns the number of fresh messages.
	size() int
	// deliverable reports whether take would find a message.
	deliverable(now int64) bool
}

// takeRequest is a receive's request to a delivery order.
type takeRequest struct {
	limit  int
	now    int64
	decide func(m *message) decision
	full   func() bool // reports whether the messages taken so far are enough
	// oldOnly requests messages that were received before, to limit memory.
	oldOnly bool
	// complete means that memory holds all visible messages of the queue.
	complete bool
}

// wants reports whether take should continue after n messages.
func (t *takeRequest) wants(n int) bool { return n < t.limit && (t.full == nil || !t.full()) }

// decision is the fate of a message that could be delivered.
type decision int

const (
	deliverIt    decision = iota // to the receiver
	deadLetterIt                 // move to the dead-letter queue
	skipIt                       // expired; the sweep deletes it
)
