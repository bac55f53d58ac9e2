package broker

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

// Reschedule makes a visible, delayed or in-flight message visible after a delay of 0 to 12 hours; for an
// in-flight one, the limit includes the time since its receive. On a FIFO queue, a delay invalidates earlier
// receipt handles of a visible message. The error has the code [queue.CodeResourceNotFound] if the message is
// missing, and [queue.CodeUnsupportedOperation] if it is damaged.
func (q *Queue) Reschedule(ctx context.Context, id string, delay time.Duration) error {
	if delay < 0 || delay > queue.MaxVisibility {
		return errParameter("DelaySeconds", secondsText(delay), "Must be between 0 and 43200, if provided.")
	}
	live, err := q.live(ctx, 0)
	if err != nil {
		return err
	}

	key, err := live.findIntact(id)
	if err != nil {
		return err
	}

	claimed, err := live.postponeOrClaim(key, id, delay)
	if claimed == nil {
		return err
	}
	r := &rescheduling{q: live, m: claimed, delay: delay}
	if err := q.b.writer.do(r, needsNothing); err != nil {
		return err
	}
	if !r.found {
		return errNoMessage(q.name, id)
	}
	return nil
}

func (q *liveQueue) postponeOrClaim(key int64, id string, delay time.Duration) (claimed *message, err error) {
	q.lockAndExpire()
	defer q.mu.Unlock()
	m := q.index.held[key]
	switch {
	case q.deleted || key <= q.index.low() || m != nil && m.leaving:
		return nil, errNoMessage(q.name, id)
	case m != nil:
		return nil, q.postpone(m, delay)
	}
	return q.index.claim(key), nil
}

// findIntact returns 0 if the message is missing. It withholds a damaged one and returns an error.
func (q *liveQueue) findIntact(id string) (key int64, err error) {
	var rows []*record
	err = q.broker.read(func(c *conn) (err error) {
		if key, err = q.index.keyOf(c, id); err == nil {
			rows, err = c.lookUp(key)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if len(rows) > 0 && rows[0].isDamaged() {
		q.withhold(rows[0])
		return 0, errIsDamaged(id)
	}
	return key, nil
}

func errNoMessage(name, id string) error {
	return queue.Errorf(queue.CodeResourceNotFound, "Queue %s has no message %s.", name, clip(id))
}

// The caller must hold the lock.
func (q *liveQueue) postpone(m *message, delay time.Duration) error {
	now := q.now()
	switch {
	case m.inFlight && now-m.receivedAt+int64(delay) >= int64(queue.MaxVisibility):
		return errBeyondLimit(delay)
	case m.inFlight:
		q.repeats.forget(m)
		q.changeVisibility(m, now, delay)
	case delay > 0: // hide it by a receive that does not count
		q.index.order.withdraw(m)
		m.count++
		m.unread++
		m.uncounted = true
		m.epoch = q.broker.epoch
		m.receivedAt = now
		m.until = now + int64(delay)
		q.index.startFlight(m, true)
		q.index.order.resume(m)
		q.setAlarm()
		q.storeReceive(m)
	}
	return nil
}

func errBeyondLimit(asked time.Duration) error {
	return errParameter("VisibilityTimeout", secondsText(asked),
		fmt.Sprintf("Total VisibilityTimeout for the message is beyond the limit [%d seconds]",
			int(queue.MaxVisibility/time.Second)))
}

type rescheduling struct {
	q          *liveQueue
	m          *message // from claim
	delay      time.Duration
	found      bool
	before, to int64 // end of the delay in Unix milliseconds, or 0
	sent       int64 // new sent time of a scheduled message; otherwise 0
}

func (r *rescheduling) apply(t *tx) {
	r.found = false
	r.to = 0
	r.sent = 0
	if t.gone(r.q) {
		return
	}
	row := t.row(r.q, r.m.key)
	if row == nil {
		return
	}

	r.found = true
	r.before = row.due
	if r.delay > 0 {
		r.to = roundUp(r.q.broker.clock.nowRoundedUp()+r.delay.Milliseconds(), delayGrid)
	}

	if !scheduled(row.sent, row.due) {
		t.exec(`UPDATE messages SET due = ? WHERE id = ?`, orNull(r.to), r.m.key)
		return
	}

	// The message stays scheduled, for now at the earliest.
	r.sent = r.to
	if r.to == 0 {
		r.sent = r.q.broker.clock.nowMilli()
	}

	t.exec(`UPDATE messages SET due = ?1, sent = ?1 WHERE id = ?2`, r.sent, r.m.key)
}

func (r *rescheduling) onCommit(err error) error {
	q := r.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.index.unreserve(r.m)
	if r.found && err == nil {
		q.index.delays.sub(r.before)
		if r.to != 0 {
			q.index.delays.add(r.to, 1)
		}
		if r.sent != 0 {
			q.watchRetention(r.sent)
		}
	}

	q.setAlarm()
	q.wakeAfterRemoval(1)
	return err
}
