package broker

import (
	"maps"
	"slices"
	"time"

	"tendril/queue"
)

func (r *receive) deliver(list []receivedMessage) ([]queue.Message, error) {
	if err := r.readContents(list); err != nil {
		if !r.result.repeated {
			r.undo(list)
		}
		return nil, err
	}

	out := make([]queue.Message, 0, len(list))
	work := new(block)
	for _, g := range list {
		if g.content == nil {
			r.removeMissing(g.m)
			continue
		}
		if g.content.isDamaged() {
			r.q.withhold(g.content)
			continue
		}
		m := r.q.message(work, g.content)
		m.ReceiptHandle = r.q.broker.seal.handle(work, g.receipt)
		m.ReceiveCount, m.Attempt = int(g.count), int(g.count-g.arrived)
		m.FirstReceivedAt = date(g.first)
		out = append(out, m)
	}
	return out, nil
}

func (r *receive) readContents(list []receivedMessage) error {
	var keys []int64
	for _, g := range list {
		if g.content == nil {
			keys = append(keys, g.m.key)
		}
	}

	if len(keys) == 0 {
		return nil
	}

	return r.q.broker.read(func(c *conn) error {
		rows, err := c.lookUp(keys...)
		for _, row := range rows {
			i := slices.IndexFunc(list, func(g receivedMessage) bool { return g.m.key == row.key })
			list[i].content = row
		}
		return err
	})
}

// message converts r, without the fields that only a receive can set.
func (q *liveQueue) message(work *block, r *record) queue.Message {
	attributes, _ := decodeAttributes(r.attributes) // a damaged row may yield only some
	m := queue.Message{
		ID: q.broker.seal.messageID(work, r.originKey()), Body: r.body, Attributes: attributes,
		ReceiveCount: int(r.received), SentAt: date(r.sent), FirstReceivedAt: date(r.first),
		SenderID: q.broker.opts.SenderID, GroupID: r.group, DedupID: r.dedup, TraceHeader: r.trace,
		DeadLetterSource: q.broker.opts.localARN(r.source),
	}
	if q.index.fifo {
		m.SequenceNumber = sequenceNumber(r.key)
	}
	return m
}

// undo makes messages with unreadable contents visible again. Their receives do not count.
func (r *receive) undo(list []receivedMessage) {
	q := r.q
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, g := range list {
		if m := g.m; int(m.count) == int(g.receipt.serial) && !m.leaving && !m.gone {
			q.uncount(m)
			q.changeVisibility(m, q.now(), 0)
		}
	}
}

func (r *receive) removeMissing(m *message) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	if !m.gone && !m.leaving {
		r.q.index.remove(m)
	}
}

const attemptWindow = 5 * time.Minute

// repeats holds a FIFO queue's receives by attempt ID. For five minutes, an ID returns the same messages and receipt
// handles, unless a message has changed.
type repeats map[string]*repeatable

type repeatable struct {
	expires  int64
	messages []receivedMessage
}

// The caller must hold the lock.
func (r *receive) repeat() []receivedMessage {
	q := r.q
	id, now := r.req.AttemptID, q.now()
	a := q.repeats[id]
	if id == "" || a == nil || a.expires <= now {
		return nil
	}

	for _, g := range a.messages {
		if !g.m.inFlight || g.m.leaving || !g.m.isLatest(g.receipt) {
			delete(q.repeats, id)
			return nil
		}
	}

	for _, g := range a.messages {
		q.changeVisibility(g.m, now, r.visibility)
	}
	return slices.Clone(a.messages)
}

func (a repeats) remember(id string, list []receivedMessage, now int64) {
	if id == "" {
		return
	}
	maps.DeleteFunc(a, func(_ string, old *repeatable) bool { return old.expires <= now })
	list = slices.Clone(list)
	for i := range list {
		list[i].content = nil
	}
	a[id] = &repeatable{expires: now + int64(attemptWindow), messages: list}
}

func (a repeats) forget(m *message) {
	maps.DeleteFunc(a, func(_ string, old *repeatable) bool {
		return slices.ContainsFunc(old.messages, func(g receivedMessage) bool { return g.m == m })
	})
}
