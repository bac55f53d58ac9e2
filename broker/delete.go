package broker

import (
	"context"
	"errors"
	"slices"
)

// Delete removes messages by receipt handle. It returns nil if all succeeded, otherwise one error per entry. Deleting
// a missing message succeeds. A standard queue accepts earlier and expired receipt handles; a FIFO queue accepts only
// the latest one, while the message is in flight.
func (q *Queue) Delete(ctx context.Context, receipts []string) []error {
	return q.remove(ctx, receipts, CauseDone)
}

// Expire is like [Queue.Delete] for messages past their deadline that were never processed. The ledger counts them as
// expired.
func (q *Queue) Expire(ctx context.Context, receipts []string) []error {
	return q.remove(ctx, receipts, CauseExpired)
}

func (q *Queue) remove(ctx context.Context, receipts []string, cause Cause) []error {
	live, err := q.live(ctx, len(receipts))
	if err != nil {
		return sameError(err, len(receipts))
	}

	r := &removal{ctx: ctx, q: live, cause: cause, messages: make([]*message, 0, len(receipts))}
	var unheld []unheldReceipt
	errs, err := live.eachReceipt(len(receipts), func(i int) string { return receipts[i] },
		func(i int, of receipt, m *message) error {
			if m == nil && live.index.fifo && live.index.mayExist(of) {
				unheld = append(unheld, unheldReceipt{i, receipts[i], of.key})
				return nil
			}
			return r.reserve(of, m, receipts[i])
		})
	if err == nil {
		err = q.b.writer.do(r, needsNothing)
	}
	if err != nil {
		return sameError(err, len(receipts))
	}
	live.checkUnheld(unheld, errs, "")
	return entryErrors(errs)
}

// eachReceipt opens n receipt handles and calls f for each valid one while holding the lock; m is nil if the message is
// not in memory. It returns one error per handle.
func (q *liveQueue) eachReceipt(n int, handle func(i int) string,
	f func(i int, r receipt, m *message) error) ([]error, error) {
	work := new(block)
	q.lockAndExpire()
	defer q.mu.Unlock()
	if err := q.checkOpen(); err != nil {
		return nil, err
	}

	errs := make([]error, n)
	for i := range errs {
		r, err := q.index.openReceipt(work, handle(i))
		if err == nil {
			err = f(i, r, q.index.held[r.key])
		}
		errs[i] = err
	}
	return errs, nil
}

func (r *removal) reserve(of receipt, m *message, handle string) error {
	x := &r.q.index
	switch {
	case m == nil && !x.mayExist(of):
		return nil
	case m != nil && m.leaving:
		return nil // the request that is removing the message commits before this one
	case m == nil:
		m = x.claim(of.key)
	case x.fifo && (!m.isLatest(of) || !m.inFlight):
		return errReceipt(handle, receiptExpired)
	}
	m.leaving = true
	r.messages = append(r.messages, m)
	return nil
}

const receiptExpired = "The receipt handle has expired."

func (x *index) openReceipt(work *block, handle string) (receipt, error) {
	r, err := x.broker.seal.open(work, handle)
	if err == nil && r.key>>seqBits != x.number {
		err = errHandle(handle)
	}
	return r, err
}

// mayExist reports whether a message that is not in memory may be visible in the store, because a receive before the
// latest opening was not stored. The caller must hold the lock.
func (x *index) mayExist(r receipt) bool { return r.epoch < x.broker.epoch && r.key > x.low() }

type unheldReceipt struct {
	entry  int
	handle string
	key    int64
}

// checkUnheld sets the errors of receipts whose message was not in memory. ifMissing is the reason if the message
// does not exist, or "" if that is not an error. On a FIFO queue, the receipt of a stored message has expired.
func (q *liveQueue) checkUnheld(unheld []unheldReceipt, errs []error, ifMissing string) {
	for _, u := range unheld {
		found := false
		err := q.broker.read(func(c *conn) (err error) {
			found, err = c.exists(u.key)
			return err
		})
		switch {
		case err != nil:
			errs[u.entry] = err
		case !found && ifMissing != "":
			errs[u.entry] = errReceipt(u.handle, ifMissing)
		case found && q.index.fifo:
			errs[u.entry] = errReceipt(u.handle, receiptExpired)
		}
	}
}

func entryErrors(errs []error) []error {
	if errors.Join(errs...) == nil {
		return nil
	}
	return errs
}

func sameError(err error, n int) []error { return slices.Repeat([]error{err}, max(1, n)) }

// DeleteMessages removes messages by ID and returns their number. It skips messages that are missing or being
// removed. The ledger counts them as purged.
func (b *Broker) DeleteMessages(ctx context.Context, name string, ids []string) (int, error) {
	q, err := b.live(name)
	if err != nil {
		return 0, err
	}
	reserved, err := q.reserve(ctx, ids)
	if err != nil || len(reserved) == 0 {
		return 0, err
	}
	return q.removeReserved(ctx, reserved)
}

func (q *liveQueue) removeReserved(ctx context.Context, reserved []*message) (int, error) {
	r := &removal{ctx: ctx, q: q, messages: reserved, cause: CauseDeleted}
	err := q.broker.writer.do(r, needsNothing)
	if err != nil {
		return 0, err
	}
	return r.counted, nil
}

type removal struct {
	ctx        context.Context
	q          *liveQueue
	messages   []*message // marked as leaving
	cause      Cause
	counted    int // excludes messages that were already gone
	storedDues []int64
	removed    []Removal
	work       block
}

func (r *removal) departed() int { return r.counted }

func (r *removal) apply(t *tx) {
	r.counted = 0
	r.storedDues = nil
	r.removed = nil
	if t.gone(r.q) {
		return
	}

	k := t.counters(r.q)
	for _, m := range r.messages {
		if m.claimed {
			r.removeStored(t, m.key)
		} else if keySeq(m.key) > k.floor {
			r.removeHeld(t, m)
		}
	}
	*r.cause.counter(k) += int64(r.counted)
}

func (r *removal) removeStored(t *tx, key int64) {
	row := t.row(r.q, key)
	if row == nil {
		return
	}
	r.storedDues = append(r.storedDues, row.due)
	r.record(row.originKey(), int(row.received))
	t.remove(key, true)
	r.counted++
}

func (r *removal) removeHeld(t *tx, m *message) {
	r.q.mu.Lock()
	mayHaveRows := m.stored || m.origin != m.key
	origin := m.origin
	receives := m.received()
	r.q.mu.Unlock()
	r.record(origin, int(receives))
	t.remove(m.key, mayHaveRows)
	r.counted++
}

func (r *removal) record(origin int64, receives int) {
	b := r.q.broker
	if b.events.Removed == nil {
		return
	}
	if r.removed == nil {
		r.removed = make([]Removal, 0, len(r.messages))
	}
	r.removed = append(r.removed, Removal{Queue: r.q.name, ID: b.seal.messageID(&r.work, origin), Cause: r.cause,
		Receives: receives})
}

func (r *removal) onCommit(err error) error {
	r.publish(err)
	if err == nil {
		r.q.broker.report(r.ctx, r.removed)
	}
	return err
}

func (b *Broker) report(ctx context.Context, removed []Removal) {
	if b.events.Removed != nil && len(removed) > 0 {
		b.events.Removed(ctx, removed)
	}
}

// After an error, publish makes the messages available again.
func (r *removal) publish(err error) {
	q := r.q
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range r.messages {
		q.index.endLeaving(m, err == nil)
	}

	if err == nil {
		*r.cause.counter(&q.index.counters) += int64(r.counted)
		for _, due := range r.storedDues {
			q.index.delays.sub(due)
		}
	}

	q.wakeAfterRemoval(len(r.messages))
}
