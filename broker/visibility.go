package broker

import (
	"context"

	"tendril/queue"
)

// ChangeVisibility changes visibility timeouts. It returns nil if all changes succeeded, otherwise one error per
// change. The total time since the receive must stay below 12 hours. On a visible message, a change has no effect
// (standard queue) or is an error (FIFO queue). Changes take effect at once and become durable shortly after.
func (q *Queue) ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error {
	live, err := q.live(ctx, len(changes))
	if err != nil {
		return sameError(err, len(changes))
	}

	errs, unheld, err := live.changeAll(changes)
	if err != nil {
		return sameError(err, len(changes))
	}
	live.checkUnheld(unheld, errs, notAvailable)
	return entryErrors(errs)
}

// The caller must call checkUnheld.
func (q *liveQueue) changeAll(changes []queue.VisibilityChange) (errs []error, unheld []unheldReceipt, err error) {
	q.lockAndExpire()
	defer q.mu.Unlock()
	if err := q.ready(); err != nil {
		return nil, nil, err
	}

	now := q.broker.clock.now()
	errs = make([]error, len(changes))
	for i, c := range changes {
		unheldKey, err := q.change(c, now)
		errs[i] = err
		if unheldKey != 0 {
			unheld = append(unheld, unheldReceipt{i, c.ReceiptHandle, unheldKey})
		}
	}
	return errs, unheld, nil
}

const notAvailable = "Message does not exist or is not available for visibility timeout change."

// unheldKey is the key of a message that is not in memory but may be in the store, without a timeout to change (see
// mayExist). The caller must hold the lock.
func (q *liveQueue) change(c queue.VisibilityChange, now int64) (unheldKey int64, err error) {
	r, err := q.index.open(new(block), c.ReceiptHandle)
	if err != nil {
		return 0, err
	}
	if c.Visibility < 0 || c.Visibility > queue.MaxVisibility {
		return 0, errParameter("VisibilityTimeout", secondsText(c.Visibility),
			"Must be between 0 and 43200, if provided.")
	}

	m := q.index.held[r.key]
	switch {
	case m == nil && q.index.mayExist(r):
		return r.key, nil
	case m == nil || m.leaving:
		return 0, errReceipt(c.ReceiptHandle, notAvailable)
	case q.index.fifo && (!m.newest(r) || !m.inFlight):
		return 0, errReceipt(c.ReceiptHandle, receiptExpired)
	case !m.inFlight:
		return 0, nil
	case now-m.receivedAt+int64(c.Visibility) >= int64(queue.MaxVisibility):
		return 0, errBeyondLimit(c.Visibility)
	}

	q.repeats.forget(m)
	if c.Unread && m.newest(r) {
		q.uncount(m)
	}
	q.changeVisibility(m, now, c.Visibility)
	return 0, nil
}

func (q *liveQueue) uncount(m *message) {
	m.uncount()
	if m.mark != 0 {
		q.broker.marks.put(m)
	}
}
