package broker

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

// ChangeVisibility applies the changes, one error for each; nil when all
// succeeded. A message that is visible stays visible: on a standard queue the
// change succeeds without effect, on a FIFO queue the receipt has expired. The
// total since the receive stays below 12 hours. An unread message is as if that
// receive had not been, but for its receipt, which stays good while it is hidden.
//
// The change holds at once, and over a restart from a moment later.
func (b *Broker) ChangeVisibility(ctx context.Context, name string, changes []queue.VisibilityChange) []error {
	q, err := b.batchQueue(ctx, name, len(changes))
	if err != nil {
		return repeated(err, len(changes))
	}
	v := &visibilityChanges{q: q, changes: changes, errs: make([]error, len(changes)), older: map[int]int64{}}
	q.mu.Lock()
	if err = q.ready(); err == nil {
		now := q.clock.now()
		for i, c := range changes {
			v.errs[i] = v.apply(i, c, now)
		}
		q.arm()
	}
	q.mu.Unlock()
	if err == nil && len(v.older) > 0 {
		err = v.answerOlder()
	}
	return answers(v.errs, err)
}

// visibilityChanges is one call of ChangeVisibility.
type visibilityChanges struct {
	q       *liveQueue
	changes []queue.VisibilityChange
	errs    []error
	// older are the keys of the messages, by entry, whose receipt is from before the store
	// was opened and of which memory knows nothing.
	older map[int]int64
}

const notAvailable = "Message does not exist or is not available for visibility timeout change."

// apply applies one change. The lock is held.
func (v *visibilityChanges) apply(i int, c queue.VisibilityChange, now int64) error {
	q := v.q
	r, err := q.open(new(block), c.ReceiptHandle)
	if err != nil {
		return err
	}
	if c.Visibility < 0 || c.Visibility > queue.MaxVisibility {
		return errParameter("VisibilityTimeout", inSeconds(c.Visibility), "Must be between 0 and 43200, if provided.")
	}
	m := q.held[r.key]
	switch {
	case m == nil && r.epoch < q.epoch && r.key > q.low():
		v.older[i] = r.key
		return nil
	case m == nil || m.leaving:
		return errReceipt(c.ReceiptHandle, notAvailable)
	case q.set.fifo && (!m.newest(r) || !m.inFlight):
		return errReceipt(c.ReceiptHandle, receiptExpired)
	case !m.newest(r) || !m.inFlight:
		return nil
	case now-m.receivedAt+int64(c.Visibility) >= int64(queue.MaxVisibility):
		return errParameter("VisibilityTimeout", inSeconds(c.Visibility),
			fmt.Sprintf("Total VisibilityTimeout for the message is beyond the limit [%d seconds]",
				int(queue.MaxVisibility/time.Second)))
	}
	q.attempts.forget(m)
	if c.Unread {
		m.uncount()
	}
	q.changeVisibility(m, now, c.Visibility)
	return nil
}

// answerOlder answers for receipts of messages that memory knows nothing of:
// those that exist are visible, so nothing changes.
func (v *visibilityChanges) answerOlder() error {
	return v.q.read(func(c *conn) error {
		for i, key := range v.older {
			found, err := c.exists(key)
			switch handle := v.changes[i].ReceiptHandle; {
			case err != nil:
				return err
			case !found:
				v.errs[i] = errReceipt(handle, notAvailable)
			case v.q.isFIFO():
				v.errs[i] = errReceipt(handle, receiptExpired)
			}
		}
		return nil
	})
}
