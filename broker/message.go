package broker

import "iter"

// message is the state of a message in memory. Times are readings of the broker's clock; stamps are wall-clock times
// (see stamp).
type message struct {
	key    int64
	origin int64 // key that the message ID is derived from
	sent   int64 // stamp
	due    int64 // end of the delay; 0 if not delayed
	until  int64 // end of the visibility timeout while in flight
	index  int   // in index.inFlight

	content *record
	group   *group  // nil on a standard queue
	tenant  *tenant // nil on a FIFO queue, and for a message without a tenant
	size    int32

	arrived    int32 // receive count on arrival in this queue
	count      int32
	unread     int32 // receives that do not count
	epoch      uint32
	first      int64 // stamp of the first receive
	receivedAt int64
	uncounted  bool // the latest receive does not count

	inFlight bool
	leaving  bool // a request is about to remove it
	gone     bool
	queued   bool
	holds    bool // blocks its group
	stored   bool // has a row in receipts, perhaps in attempts
	failed   bool
	dirty    bool   // in the list of receives to store
	damaged  bool   // fails its checksum; see withhold
	claimed  bool   // placeholder for a message not in memory
	unposted bool   // received with CountAtPost and not posted
	mark     uint32 // slot in receiveMarks, or 0
}

// received excludes receives that do not count. count includes them, so that every receive has its own receipt
// handle.
func (m *message) received() int32 { return m.count - m.unread }

func (m *message) fresh() bool { return m.epoch == 0 }

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

// isLatest reports whether a receipt is the latest. A kill may have lost the latest receive, so a receipt of a later
// epoch is newer.
func (m *message) isLatest(of receipt) bool {
	if of.epoch == m.epoch {
		return of.serial == uint32(m.count)
	}
	return of.epoch > m.epoch
}

// An eligible message can be delivered once it is visible.
func (m *message) eligible() bool { return !m.gone && !m.leaving && !m.damaged }

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

func (r *ring) drain() iter.Seq[*message] {
	return func(yield func(*message) bool) {
		for m := r.pop(); m != nil && yield(m); m = r.pop() {
		}
	}
}

type deliveryOrder interface {
	add(m *message)      // a fresh one
	requeue(m *message)  // visible again
	forget(m *message)   // removed or withheld
	withdraw(m *message) // visible until now
	resume(m *message)   // in flight without having been taken
	// take returns the messages for which decide returns deliverIt, up to the limit. It calls decide once per
	// message.
	take(t takeRequest) []*message
	// reset drops all fresh messages, to be added again.
	reset(drop func(m *message))
	size() int
	deliverable(now int64) bool
}

type takeRequest struct {
	limit  int
	now    int64
	decide func(m *message) decision
	full   func() bool
	// preferReceived makes a standard queue prefer messages received before: fresh ones need more memory.
	preferReceived bool
	// complete means that memory holds all visible messages of the queue.
	complete bool
}

func (t *takeRequest) wants(n int) bool { return n < t.limit && (t.full == nil || !t.full()) }

type decision int

const (
	deliverIt decision = iota
	deadLetterIt
	skipIt // left to the sweep
)
