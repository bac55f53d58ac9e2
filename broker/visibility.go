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

	var unheld []unheldReceipt
	errs, err := live.eachReceipt(len(changes), func(i int) string { return changes[i].ReceiptHandle },
		func(i int, r receipt, m *message) error {
			mayBeStored, err := live.change(&changes[i], r, m)
			if mayBeStored {
				unheld = append(unheld, unheldReceipt{i, changes[i].ReceiptHandle, r.key})
			}
			return err
		})
	if err != nil {
		return sameError(err, len(changes))
	}
	live.checkUnheld(unheld, errs, notAvailable)
	return entryErrors(errs)
}

const notAvailable = "Message does not exist or is not available for visibility timeout change."

// mayBeStored means that the message is not in memory but may be in the store, without a timeout to change (see
// mayExist). The caller must hold the lock.
func (q *liveQueue) change(c *queue.VisibilityChange, r receipt, m *message) (mayBeStored bool, err error) {
	if c.Visibility < 0 || c.Visibility > queue.MaxVisibility {
		return false, errParameter("VisibilityTimeout", secondsText(c.Visibility),
			"Must be between 0 and 43200, if provided.")
	}

	now := q.now()
	switch {
	case m == nil && q.index.mayExist(r):
		return true, nil
	case m == nil || m.leaving:
		return false, errReceipt(c.ReceiptHandle, notAvailable)
	case q.index.fifo && (!m.isLatest(r) || !m.inFlight):
		return false, errReceipt(c.ReceiptHandle, receiptExpired)
	case !m.inFlight:
		return false, nil
	case now-m.receivedAt+int64(c.Visibility) >= int64(queue.MaxVisibility):
		return false, errBeyondLimit(c.Visibility)
	}

	q.repeats.forget(m)
	if c.Unread && m.isLatest(r) {
		q.uncount(m)
	}
	q.changeVisibility(m, now, c.Visibility)
	return false, nil
}

func (q *liveQueue) uncount(m *message) {
	m.uncount()
	if m.mark != 0 {
		q.broker.marks.put(m)
	}
}
