package broker

import (
	"slices"
	"time"

	"tendril/queue"
)

// deliver makes what a receive returns, reading the contents that memory does
// not hold. Messages that cannot be read go back to the queue.
func (q *liveQueue) deliver(list []receivedMessage) ([]queue.Message, error) {
	if err := q.readContents(list); err != nil {
		q.undoReceive(list)
		return nil, err
	}
	out := make([]queue.Message, 0, len(list))
	work := new(block)
	for _, g := range list {
		if g.content == nil {
			q.vanished(g.m)
			continue
		}
		m, err := q.b.message(work, g.content, q.isFIFO())
		if err != nil {
			q.withholdDamaged(g.m, err)
			continue
		}
		m.ReceiptHandle = q.b.seal.handle(work, g.receipt)
		m.ReceiveCount, m.Attempt = int(g.count), int(g.count-g.arrived)
		m.FirstReceivedAt = date(g.first)
		out = append(out, m)
	}
	return out, nil
}

// readContents fills in the contents that are not cached.
func (q *liveQueue) readContents(list []receivedMessage) error {
	var keys []int64
	for _, g := range list {
		if g.content == nil {
			keys = append(keys, g.m.key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return q.b.read(func(c *conn) error {
		return c.records(keys, func(r *record) {
			i := slices.IndexFunc(list, func(g receivedMessage) bool { return g.m.key == r.key })
			list[i].content = r
		})
	})
}

// message makes the outside view of a row, without what only a receive knows.
func (b *Broker) message(work *block, r *record, fifo bool) (queue.Message, error) {
	if r.checksum() != r.sum {
		return queue.Message{}, errDamaged
	}
	attributes, err := decodeAttributes(r.attributes)
	if err != nil {
		return queue.Message{}, err
	}
	m := queue.Message{
		ID: b.seal.formatID(work, r.originKey()), Body: r.body, Attributes: attributes,
		ReceiveCount: int(r.received), SentAt: date(r.sent), FirstReceivedAt: date(r.first),
		SenderID: b.opts.SenderID, GroupID: r.group, DedupID: r.dedup, TraceHeader: r.trace,
		DeadLetterSource: r.source,
	}
	if fifo {
		m.SequenceNumber = sequenceNumber(r.key)
	}
	return m, nil
}

// takeBack undoes a receive whose contents could not be read.
func (q *liveQueue) undoReceive(list []receivedMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, g := range list {
		if m := g.m; int(m.count) == int(g.receipt.serial) && !m.leaving && !m.gone {
			q.endFlight(m)
		}
	}
	q.waiters.wake(len(list))
}

// vanished forgets a message whose row is gone: an operator removed it while
// it was being received.
func (q *liveQueue) vanished(m *message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !m.gone && !m.leaving {
		q.remove(m)
	}
}

// setAside keeps a damaged message out of the way for as long as the process
// lives. It stays on disk and in the ledger, for an operator to look at, move
// or delete; on a FIFO queue its group goes on without it.
func (q *liveQueue) withholdDamaged(m *message, err error) {
	q.b.log.Error("A stored message is damaged and will not be delivered; it stays on disk",
		"queue", q.name, "id", q.b.seal.messageID(m.origin), "err", err)
	q.mu.Lock()
	defer q.mu.Unlock()
	m.damaged = true
	q.order.forget(m)
}

// forever is a reading that no process lives to see.
const forever = 1<<63 - 1

// attemptWindow is how long a receive with an attempt id can be repeated.
const attemptWindow = 5 * time.Minute

// attempt is a receive of a FIFO queue that can be repeated: the same id
// within five minutes gives the same messages with the same receipts, and
// their visibility starts again, as long as none of them was deleted, changed
// or became visible. Attempts are not kept over a restart.
type attempt struct {
	expires  int64 // reading
	messages []receivedMessage
}

// repeat answers a receive whose attempt id is known. The lock is held.
func (q *liveQueue) repeat(r *receive) []receivedMessage {
	a := q.attempts[r.attempt]
	now := q.b.clock.now()
	if r.attempt == "" || a == nil || a.expires <= now {
		return nil
	}
	for _, g := range a.messages {
		if !g.m.inFlight || g.m.leaving || !g.m.newest(g.receipt) {
			delete(q.attempts, r.attempt)
			return nil
		}
	}
	for _, g := range a.messages {
		g.m.until = now + int64(r.visibility)
		if r.visibility == 0 {
			q.endFlight(g.m)
		} else {
			q.inFlight.fix(g.m)
		}
		q.store(g.m)
	}
	q.arm()
	return append([]receivedMessage(nil), a.messages...)
}

// noteAttempt remembers a receive with an attempt id. The lock is held.
func (q *liveQueue) noteAttempt(r *receive, list []receivedMessage) {
	if r.attempt == "" {
		return
	}
	now := q.b.clock.now()
	for id, a := range q.attempts {
		if a.expires <= now {
			delete(q.attempts, id)
		}
	}
	if q.attempts == nil {
		q.attempts = map[string]*attempt{}
	}
	a := &attempt{expires: now + int64(attemptWindow)}
	for _, g := range list {
		g.content = nil
		a.messages = append(a.messages, g)
	}
	q.attempts[r.attempt] = a
}

// forgetAttempt ends the repeatability of the receive that gave out m, since
// its visibility was changed. The lock is held.
func (q *liveQueue) forgetAttempt(m *message) {
	for id, a := range q.attempts {
		for _, g := range a.messages {
			if g.m == m {
				delete(q.attempts, id)
				break
			}
		}
	}
}
