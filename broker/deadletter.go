package broker

import (
	"tendril/queue"
)

// transfer is the request that moves messages to other queues in one
// transaction: to the dead-letter queue, or where an operator wants them.
type transfer struct {
	from  *liveQueue
	items []*transferItem
	dead  bool // by the redrive policy
	done  chan error
}

// transferItem is one message on its way.
type transferItem struct {
	m      *message // leaving; a claim if memory did not hold the message
	to     *liveQueue
	toDead bool   // which is a dead-letter queue
	record record // the new row, without content
	due    int64  // of the old row
	moved  bool
}

func (t *transfer) needs() (durable, space bool) { return true, false }

func (t *transfer) apply(x *tx) error {
	for _, it := range t.items {
		it.moved = false
		if x.gone(t.from) || x.gone(it.to) {
			continue
		}
		old, found, err := x.row(t.from, it.m.key)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		t.plan(it, old, x.counters(it.to))
		if err := x.copyRow(it.m.key, &it.record); err != nil {
			return err
		}
		x.remove(it.m.key, true)
		it.moved = true
		from, to := x.counters(t.from), x.counters(it.to)
		t.account(from, to)
	}
	return nil
}

// account counts one moved message.
func (t *transfer) account(from, to *counters) {
	if to.movedIn++; t.dead {
		from.deadLettered++
	} else {
		from.movedOut++
	}
}

// plan works out the new row. Id and content stay, and so does the receive
// count, while the count that triggers redrive starts anew. The sent time
// stays when a standard queue dead-letters, so that retention goes on; in all
// other cases the message begins a new life in its new queue: it is no dead letter
// there unless that is a dead-letter queue too, and was not received yet.
func (t *transfer) plan(it *transferItem, old record, to *counters) {
	r := &it.record
	*r = old
	it.due = old.due
	r.key, r.origin, r.due = makeKey(it.to.number, to.next), old.originKey(), 0
	to.next++
	if !it.m.fresh() {
		r.received, r.first = int64(it.m.received()), it.m.first
	}
	now := stamp()
	if !t.dead || it.to.isFIFO() {
		r.sent = now
	}
	switch {
	case t.dead:
		r.dead, r.source = now, t.from.arn
	case !it.toDead:
		r.dead, r.first = 0, 0
	}
}

// row reads a message of a queue, without its content.
func (x *tx) row(q *liveQueue, key int64) (r record, found bool, err error) {
	if keySeq(key) <= q.disk.floor {
		return r, false, nil
	}
	err = x.c.heads([]int64{key}, func(head *record) { r, found = *head, true })
	return r, found, err
}

// copyRow writes a row anew with the content of the one under key.
func (x *tx) copyRow(key int64, r *record) error {
	_, err := x.c.exec(`INSERT INTO messages (`+allColumns+`)
		SELECT ?, ?, sum, size, NULL, ?, ?, ?, ?, ?, group_id, dedup_id, trace, attributes, body FROM messages WHERE id = ?`,
		r.key, r.sent, r.origin, number(r.received), number(r.first), number(r.dead), text(r.source), key)
	return err
}

func (t *transfer) onCommit(err error) {
	t.from.queues.moving.Lock()
	t.from.mu.Lock()
	for _, it := range t.items {
		if it.moved = it.moved && err == nil; it.moved {
			t.leave(it)
		} else {
			t.from.keep(it.m)
		}
	}
	t.from.wakeAfterRemoval(len(t.items))
	t.from.mu.Unlock()
	for _, it := range t.items {
		if it.moved {
			t.enter(it)
		}
	}
	t.from.queues.moving.Unlock()
	t.done <- err
}

// leave takes a moved message out of its queue. The queue's lock is held.
func (t *transfer) leave(it *transferItem) {
	q := t.from
	if t.dead {
		q.counters.deadLettered++
	} else {
		q.counters.movedOut++
	}
	if it.due != 0 {
		q.delays.sub(it.due)
	}
	if it.m.claimed {
		q.unclaim(it.m)
	} else {
		q.remove(it.m)
	}
}

// enter takes it into the other.
func (t *transfer) enter(it *transferItem) {
	q := it.to
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counters.movedIn++
	q.counters.next = keySeq(it.record.key) + 1
	q.arrive(&it.record, false)
	q.waiters.wake(1)
	q.watchRetention(it.record.sent)
}

// deadLetter moves messages that have used up their receives to the queue's
// dead-letter queue. On an error they stay, visible.
func (q *liveQueue) deadLetter(list []*message) error {
	q.mu.Lock()
	policy := q.set.redrive
	q.mu.Unlock()
	var to *liveQueue // nil when there is no policy any more, or its target is gone
	if policy != nil {
		to = q.byARN(policy.target)
	}
	t := &transfer{from: q, dead: true, done: make(chan error, 1)}
	for _, m := range list {
		t.items = append(t.items, &transferItem{m: m, to: to})
	}
	if to == nil {
		t.onCommit(queue.ErrNoQueue)
		return nil
	}
	if err := q.writer.do(t, t.done); err != nil {
		return err
	}
	var ids []string
	for _, it := range t.items {
		if it.moved {
			ids = append(ids, q.seal.messageID(it.record.origin))
		}
	}
	if f := q.events.DeadLettered; f != nil && len(ids) > 0 {
		f(q.name, to.name, ids)
	}
	return nil
}

// checkRedrive refuses a redrive policy whose target does not exist, is of the
// other type, or does not permit this queue.
func (b *core) checkRedrive(name string, set *settings, value string) error {
	if set.redrive == nil {
		return nil
	}
	to := b.byARN(set.redrive.target)
	if to == nil {
		return errPolicy("RedrivePolicy", value, "Dead letter target does not exist.")
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.set.fifo != set.fifo {
		return errPolicy("RedrivePolicy", value, "Dead-letter queue must be same type of queue as the source..")
	}
	if !to.set.allow.permits(b.opts.arn(name)) {
		return errPolicy("RedrivePolicy", value, "The dead-letter queue's redrive allow policy does not permit this queue.")
	}
	return nil
}
