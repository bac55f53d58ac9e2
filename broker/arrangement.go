package broker

// arrangement holds the visible messages that memory knows and decides which
// is given out next: [standard] or [fifo]. The queue's lock guards it.
type arrangement interface {
	// add appends a fresh message; keys grow from call to call between
	// resets, except for those with a delay on a standard queue.
	add(m *message)
	// giveBack makes a message that was taken visible again.
	giveBack(m *message)
	// release learns that a message that was taken, or is queued, is gone.
	release(m *message)
	// resume learns of a message that was in flight before the store was
	// opened, and still is.
	resume(m *message)
	// take removes up to limit messages for which judge says give. judge is
	// asked once for each message taken; those that it diverts or discards
	// are not returned.
	take(t taking) []*message
	// promote makes those deliverable whose delay has ended.
	promote(now int64)
	// reset forgets the fresh messages, which will be added again, and calls
	// drop with each.
	reset(drop func(m *message))
	// clear forgets all messages, calling drop with the fresh ones.
	clear(drop func(m *message))
	// size is the number of fresh messages held.
	size() int
	// deliverable reports whether take would have something to judge.
	deliverable() bool
}

// taking is what one receive asks of an arrangement.
type taking struct {
	limit int
	now   int64
	judge func(m *message) verdict
	// oldOnly asks for messages that were received before, so that memory
	// need not hold more.
	oldOnly bool
}

// verdict says what is to become of a message that could be given out.
type verdict int

const (
	give    verdict = iota // hand it to the receiver
	divert                 // it goes to the dead-letter queue
	discard                // it is expired; the sweep takes it away
)
