package broker

// message is what memory knows of a message: those in the window, in flight
// or received before. Times are readings of the clock, stamps where said.
type message struct {
	key    int64
	origin int64 // the key its id belongs to
	sent   int64 // stamp
	due    int64 // end of its delay; 0 for none
	until  int64 // when the flight ends
	index  int   // in the deadline heap; -1 outside

	content *record // the row, while memory allows
	group   *group  // on FIFO queues
	tenant  *tenant // on standard queues; nil for none
	size    int32   // of attributes and body, in bytes

	arrived    int32  // receive count on arrival in this queue
	count      int32  // receives, the serial of the latest
	unread     int32  // those of them that do not count
	epoch      uint32 // of the store at the latest receive
	first      int64  // stamp of the first receive
	receivedAt int64  // the latest receive
	uncounted  bool   // the latest receive does not count

	inFlight bool   // hidden by a receive
	leaving  bool   // a request is about to take it away
	gone     bool   // deleted, moved or expired
	queued   bool   // waits in the delivery order to be given out again
	holds    bool   // keeps its group from giving out others
	stored   bool   // has a row in receipts, and perhaps in attempts
	failed   bool   // an attempt was recorded
	dirty    bool   // is on the list of receives to store
	damaged  bool   // what is stored is not what was sent: see withhold
	claimed  bool   // stands for a message that memory does not hold, to keep it from being given out
	unposted bool   // its latest receive counts only once it is posted, if the process is killed
	mark     uint32 // the place of its mark among the receiveMarks; 0 for none
}

// received returns the receive count. The serial goes on where it does not, so
// that no two receives have the same receipt.
func (m *message) received() int32 { return m.count - m.unread }

// fresh reports whether the message was never received in this queue: such
// ones are only in the window and can be read again from the store.
func (m *message) fresh() bool { return m.epoch == 0 }

// uncount undoes what the latest receive counted, once.
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

// newest reports whether a receipt is of the latest receive that is known. A
// receive just before the process was killed may not have been stored: then a
// receipt of a later life than the stored one is newer.
func (m *message) newest(of receipt) bool {
	if of.epoch == m.epoch {
		return of.serial == uint32(m.count)
	}
	return of.epoch > m.epoch
}

// idle reports whether the message may be given out or waits to be.
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

// pop removes the oldest message; nil when there is none.
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

// deliveryOrder holds the visible messages that memory knows and decides which
// is given out next: [standardOrder] or [fifoOrder]. The queue's lock guards it.
type deliveryOrder interface {
	// add appends a fresh message; keys grow from call to call between
	// resets, except for those with a delay on a standard queue.
	add(m *message)
	// requeue makes a message that was taken visible again.
	requeue(m *message)
	// forget learns that a message that was taken, or is queued, is gone.
	forget(m *message)
	// withdraw takes back a message that is visible, and will be in flight at once.
	withdraw(m *message)
	// resume learns of a message that was in flight before the store was
	// opened, and still is.
	resume(m *message)
	// take removes up to limit messages that decide has delivered. decide is
	// asked once for each message taken; the others are not returned.
	take(t takeRequest) []*message
	// reset forgets the fresh messages, which will be added again, and calls
	// drop with each.
	reset(drop func(m *message))
	// size is the number of fresh messages held.
	size() int
	// deliverable reports whether take would find a message.
	deliverable(now int64) bool
}

// takeRequest is what one receive asks of a delivery order.
type takeRequest struct {
	limit  int
	now    int64
	decide func(m *message) decision
	full   func() bool // reports whether the messages taken so far are enough
	// oldOnly asks for messages that were received before, so that memory
	// need not hold more.
	oldOnly bool
	// complete says that memory holds all visible messages of the queue.
	complete bool
}

// wants reports whether more than n messages may be taken.
func (t *takeRequest) wants(n int) bool { return n < t.limit && (t.full == nil || !t.full()) }

// decision says what is to become of a message that could be given out.
type decision int

const (
	deliverIt    decision = iota // give it to the receiver
	deadLetterIt                 // it goes to the dead-letter queue
	skipIt                       // it is expired; the sweep takes it away
)
