package broker

// message is what memory knows of a message: those in the window, in flight
// or received before. Times are readings of the clock, stamps where said.
type message struct {
	key     int64
	origin  int64  // the key its id belongs to
	sent    int64  // stamp
	due     int64  // end of its delay; 0 for none
	arrived int32  // receive count on arrival in this queue
	count   int32  // receives, the serial of the latest
	unread  int32  // those of them that were taken back
	epoch   uint32 // of the store at the latest receive
	first   int64  // stamp of the first receive

	receivedAt int64 // the latest receive
	until      int64 // when the flight ends
	index      int   // in the deadline heap; -1 outside

	content *record // the row, while the cache has room for it
	group   *group  // on FIFO queues

	flying  bool // hidden by a receive
	leaving bool // a request is about to take it away
	gone    bool // deleted, moved or expired
	queued  bool // waits in the arrangement to be given out again
	holds   bool // keeps its group from giving out others
	undone  bool // the latest receive was taken back
	stored  bool // has a row in receipts
	dirty   bool // is on the list of receipts to store
	damaged bool // cannot be delivered
	standIn bool // a claim on a message that memory does not hold
}

// received returns the receive count. The serial goes on where it does not, so
// that no two receives have the same receipt.
func (m *message) received() int32 { return m.count - m.unread }

// claimed reports whether this only stands in for a message that memory does
// not hold, to keep it from being given out.
func (m *message) claimed() bool { return m.standIn }

// idle reports whether the message may be given out or waits to be.
func (m *message) idle() bool { return !m.gone && !m.leaving && !m.damaged }

// fresh reports whether the message was never received in this queue: such
// ones are only in the window and can be read again from the store.
func (m *message) fresh() bool { return m.epoch == 0 }

// ring is a queue of messages that reuses its memory.
type ring struct {
	items []*message
	head  int
	n     int
}

func (r *ring) len() int { return r.n }

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

// peek returns the oldest message; nil when there is none.
func (r *ring) peek() *message {
	if r.n == 0 {
		return nil
	}
	return r.items[r.head]
}

func (r *ring) pop() *message {
	m := r.peek()
	if m == nil {
		return nil
	}
	r.items[r.head] = nil
	r.head = (r.head + 1) % len(r.items)
	r.n--
	if r.n == 0 && len(r.items) > 1024 {
		r.items, r.head = nil, 0
	}
	return m
}
