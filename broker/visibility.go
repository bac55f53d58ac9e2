package broker

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
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
	q, err := b.queue(name)
	if err == nil {
		err = checkCount(len(changes))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return repeated(err, len(changes))
	}
	errs := make([]error, len(changes))
	older := map[int]int64{}
	q.mu.Lock()
	if err = q.ready(); err == nil {
		now := q.b.clock.now()
		for i, c := range changes {
			var key int64
			if key, errs[i] = q.change(c, now); key != 0 {
				older[i] = key
			}
		}
		q.arm()
	}
	q.mu.Unlock()
	if err == nil && len(older) > 0 {
		err = q.changeOlder(changes, older, errs)
	}
	if err != nil {
		return repeated(err, len(changes))
	}
	if slices.IndexFunc(errs, func(err error) bool { return err != nil }) < 0 {
		return nil
	}
	return errs
}

const notAvailable = "Message does not exist or is not available for visibility timeout change."

// change applies one change. It returns the message's key when the receipt is
// from before the store was opened and memory knows nothing of the message.
// The lock is held.
func (q *liveQueue) change(c queue.VisibilityChange, now int64) (older int64, err error) {
	r, err := q.open(new(block), c.ReceiptHandle)
	if err != nil {
		return 0, err
	}
	if c.Visibility < 0 || c.Visibility > queue.MaxVisibility {
		return 0, errParameter("VisibilityTimeout", inSeconds(c.Visibility), "Must be between 0 and 43200, if provided.")
	}
	m := q.held[r.key]
	switch {
	case m == nil && r.epoch < q.b.epoch && r.key > q.low():
		return r.key, nil
	case m == nil || m.leaving:
		return 0, errReceipt(c.ReceiptHandle, notAvailable)
	case q.set.fifo && (!m.newest(r) || !m.inFlight):
		return 0, errReceipt(c.ReceiptHandle, receiptExpired)
	case !m.newest(r) || !m.inFlight:
		return 0, nil
	case now-m.receivedAt+int64(c.Visibility) >= int64(queue.MaxVisibility):
		return 0, errParameter("VisibilityTimeout", inSeconds(c.Visibility),
			fmt.Sprintf("Total VisibilityTimeout for the message is beyond the limit [%d seconds]",
				int(queue.MaxVisibility/time.Second)))
	}
	q.forgetAttempt(m)
	if c.Unread {
		m.uncount()
	}
	if m.until = now + int64(c.Visibility); c.Visibility == 0 {
		q.endFlight(m)
		q.waiters.wake(1)
	} else {
		q.inFlight.fix(m)
	}
	q.store(m)
	return 0, nil
}

// takeBack undoes what the latest receive counted, once.
func (m *message) uncount() {
	if m.uncounted {
		return
	}
	m.uncounted = true
	m.unread++
	if m.received() == 0 {
		m.first = 0
	}
}

// changeOlder answers for receipts of messages that memory knows nothing of:
// those that exist are visible, so nothing changes.
func (q *liveQueue) changeOlder(changes []queue.VisibilityChange, older map[int]int64, errs []error) error {
	return q.b.read(func(c *conn) error {
		for i, key := range older {
			found := false
			err := c.query(func([]driver.Value) error { found = true; return nil }, `SELECT 1 FROM messages WHERE id = ?`, key)
			switch handle := changes[i].ReceiptHandle; {
			case err != nil:
				return err
			case !found:
				errs[i] = errReceipt(handle, notAvailable)
			case q.isFIFO():
				errs[i] = errReceipt(handle, receiptExpired)
			}
		}
		return nil
	})
}
