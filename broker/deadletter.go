package broker

import (
	"cmp"
	"context"
	"slices"

	"tendril/queue"
)

type transfer struct {
	ctx   context.Context // only for its values
	from  *liveQueue
	items []*transferItem
	cause Cause // CauseDeadLettered or CauseMoved
}

func (t *transfer) movedItems() []*transferItem {
	return slices.DeleteFunc(slices.Clone(t.items), func(it *transferItem) bool { return !it.moved })
}

func (t *transfer) departed() int { return len(t.movedItems()) }

type transferItem struct {
	m      *message // marked as leaving
	to     *liveQueue
	entry  int
	toDead bool // to is a dead-letter queue
	record record
	due    int64 // before the move
	moved  bool
}

func (t *transfer) apply(x *tx) {
	for _, it := range t.items {
		it.moved = false
		if x.gone(t.from) || x.gone(it.to) {
			continue
		}
		if old := x.row(t.from, it.m.key); old != nil {
			t.move(x, it, old)
			it.moved = true
		}
	}
}

func (t *transfer) move(x *tx, it *transferItem, old *record) {
	target := x.counters(it.to)
	t.fillRecord(it, old, target)
	x.copyRow(it.m.key, &it.record)
	dead := int64(0)
	if t.cause == CauseDeadLettered {
		dead = it.record.dead
	}
	x.moveAttempts(it.m.key, it.record.key, dead)
	x.removeMoved(it.m.key)
	*t.cause.counter(x.counters(t.from))++
	target.MovedIn++
}

// fillRecord sets the record for the new queue, with a key from its counters. Dead-lettering on a standard queue
// keeps the sent time, so the retention period continues; other moves restart it.
func (t *transfer) fillRecord(it *transferItem, old *record, to *counters) {
	r := &it.record
	*r = *old
	it.due = old.due
	r.key = makeKey(it.to.index.number, to.next)
	r.origin = old.originKey()
	r.due = 0
	to.next++
	if !it.m.fresh() {
		r.received = int64(it.m.received())
		r.first = it.m.first
	}

	now := stamp()
	if t.cause == CauseMoved || it.to.index.fifo {
		r.sent = now
	}

	switch {
	case t.cause == CauseDeadLettered:
		r.dead = now
		r.source = t.from.arn
	case !it.toDead:
		r.dead = 0
		r.first = 0
	}
}

func (x *tx) copyRow(key int64, r *record) {
	x.exec(`INSERT INTO messages (`+string(allColumns)+`)
		SELECT ?, ?, sum, size, NULL, ?, ?, ?, ?, ?, group_id, dedup_id, trace, attributes, body
		FROM messages WHERE id = ?`,
		r.key, r.sent, r.origin, orNull(r.received), orNull(r.first), orNull(r.dead), orNull(r.source), key)
}

func (t *transfer) onCommit(err error) error {
	t.publish(err)
	var removed []Removal
	for _, it := range t.movedItems() {
		id := t.from.broker.messageID(it.record.origin)
		removed = append(removed, Removal{Queue: t.from.name, ID: id, Cause: t.cause, To: it.to.name,
			Receives: int(it.record.received)})
	}
	t.from.broker.report(t.ctx, removed)
	return err
}

// publish updates memory. Messages that were not moved become available again.
func (t *transfer) publish(err error) {
	q := t.from
	q.broker.queues.moving.Lock()
	defer q.broker.queues.moving.Unlock()

	q.mu.Lock()
	for _, it := range t.items {
		it.moved = it.moved && err == nil
		if it.moved {
			*t.cause.counter(&q.index.counters)++
			q.index.delays.sub(it.due)
		}
		q.index.endLeaving(it.m, it.moved)
	}

	q.wakeAfterRemoval(len(t.items))
	q.mu.Unlock()

	for _, it := range t.movedItems() {
		it.publish()
	}
}

func (it *transferItem) publish() {
	q := it.to
	q.mu.Lock()
	defer q.mu.Unlock()
	q.index.counters.MovedIn++
	q.index.counters.next = keySeq(it.record.key) + 1
	q.index.arrive(&it.record)
	q.waiters.wake(1)
	q.watchRetention(it.record.sent)
}

// TakesDeadLetters reports whether [Queue.DeadLetter] can move a message. It returns false without a dead-letter
// queue, or if last is set: after its last receive, the redrive policy moves the message.
func (q *Queue) TakesDeadLetters(last bool) bool {
	live, err := q.b.live(q.name)
	return !last && err == nil && q.b.deadLetterQueue(live) != nil
}

func (b *Broker) deadLetterQueue(of *liveQueue) *liveQueue {
	policy := of.settings().redrive
	if policy == nil {
		return nil
	}
	return b.byARN(policy.target)
}

// DeadLetter moves messages to the dead-letter queue in one transaction, regardless of their receive count. Each must
// be in flight and carry its latest receipt handle. DeadLetter returns nil if all were moved, otherwise one error per
// message.
func (q *Queue) DeadLetter(ctx context.Context, letters []queue.DeadLetter) []error {
	live, err := q.live(ctx, len(letters))
	if err != nil {
		return sameError(err, len(letters))
	}
	to := q.b.deadLetterQueue(live)
	if to == nil {
		return sameError(queue.ErrNoQueue, len(letters))
	}

	t := &transfer{ctx: ctx, from: live, cause: CauseDeadLettered}
	handle := func(i int) string { return letters[i].Message.ReceiptHandle }
	errs, err := live.eachReceipt(len(letters), handle, func(i int, r receipt, m *message) error {
		if m == nil || m.leaving || !m.isLatest(r) || !m.inFlight {
			return errReceipt(handle(i), receiptExpired)
		}
		m.leaving = true
		t.items = append(t.items, &transferItem{m: m, to: to, entry: i})
		return nil
	})
	if err == nil && len(t.items) > 0 {
		err = q.b.writer.do(t, needsFsync)
	}
	if err != nil {
		return sameError(err, len(letters))
	}
	for _, it := range t.items {
		if !it.moved {
			errs[it.entry] = errReceipt(handle(it.entry), receiptExpired)
		}
	}
	return entryErrors(errs)
}

// deadLetter moves messages in order of arrival, although receives find them in any order. On failure, or without a
// dead-letter queue, they become visible.
func (q *liveQueue) deadLetter(list []*message) error {
	slices.SortFunc(list, func(a, b *message) int { return cmp.Compare(a.key, b.key) })
	to := q.broker.deadLetterQueue(q)
	if to == nil {
		q.release(list)
		return nil
	}

	t := &transfer{ctx: context.Background(), from: q, cause: CauseDeadLettered}
	for _, m := range list {
		t.items = append(t.items, &transferItem{m: m, to: to})
	}
	if err := q.broker.writer.do(t, needsFsync); err != nil {
		return err
	}
	q.reportDeadLettered(t)
	return nil
}

func (q *liveQueue) reportDeadLettered(t *transfer) {
	moved := t.movedItems()
	if q.broker.events.DeadLettered == nil || len(moved) == 0 {
		return
	}
	ids := make([]string, len(moved))
	for i, it := range moved {
		ids[i] = q.broker.messageID(it.record.origin)
	}
	q.broker.events.DeadLettered(q.name, moved[0].to.name, ids)
}

// Redrive returns a queue's dead-letter queue ("" if missing) and maximum receive count, or "" and 0 without a
// redrive policy. If the queue itself does not exist, the error wraps [queue.ErrNoQueue].
func (b *Broker) Redrive(name string) (deadLetterQueue string, maxReceives int, err error) {
	q, err := b.live(name)
	if err != nil {
		return "", 0, err
	}
	policy := q.settings().redrive
	if policy == nil {
		return "", 0, nil
	}
	if to := b.deadLetterQueue(q); to != nil {
		deadLetterQueue = to.name
	}
	return deadLetterQueue, int(policy.max), nil
}

// MissingDeadLetterQueue returns the name of a queue's configured but missing dead-letter queue, or "". While it is
// missing, messages are retried until their retention period ends.
func (b *Broker) MissingDeadLetterQueue(name string) string {
	q, err := b.live(name)
	if err != nil {
		return ""
	}
	policy := q.settings().redrive
	if policy == nil || b.deadLetterQueue(q) != nil {
		return ""
	}
	return queue.NameInARN(policy.target)
}

func (b *Broker) checkRedrive(name string, set *settings, value string) error {
	if set.redrive == nil {
		return nil
	}
	to := b.byARN(set.redrive.target)
	if to == nil {
		return errParameter("RedrivePolicy", value, "Dead letter target does not exist.")
	}
	if to.index.fifo != set.fifo {
		return errParameter("RedrivePolicy", value, "Dead-letter queue must be same type of queue as the source..")
	}
	if !to.settings().allow.permits(b.opts.arn(name)) {
		return errParameter("RedrivePolicy", value,
			"The dead-letter queue's redrive allow policy does not permit this queue.")
	}
	return nil
}
