package broker

import (
	"context"
	"slices"

	"tendril/queue"
)

// Delete removes the messages of the receipts, one error for each; nil
// entries succeeded. It returns nil when all did. Deleting again what is gone
// succeeds. On a standard queue the newest receipt of a message deletes it,
// also after its visibility timeout, and an older one succeeds without
// effect; on a FIFO queue only the receipt of a message in flight deletes.
func (b *Broker) Delete(ctx context.Context, name string, receipts []string) []error {
	return b.remove(ctx, name, receipts, false)
}

// Expire is Delete of messages that nobody was done with, but whose time is over:
// the account counts them as expired.
func (b *Broker) Expire(ctx context.Context, name string, receipts []string) []error {
	return b.remove(ctx, name, receipts, true)
}

func (b *Broker) remove(ctx context.Context, name string, receipts []string, expired bool) []error {
	q, err := b.batchQueue(ctx, name, len(receipts))
	if err != nil {
		return repeated(err, len(receipts))
	}
	d := &deletion{q: q, expired: expired, errs: make([]error, len(receipts)), done: make(chan error, 1)}
	d.messages = make([]*message, 0, len(receipts))
	work := new(block)
	q.mu.Lock()
	err = q.ready()
	for i := 0; i < len(receipts) && err == nil; i++ {
		d.errs[i] = d.add(work, receipts[i], i)
	}
	q.mu.Unlock()
	if err == nil {
		err = b.writer.do(d, d.done)
	}
	return answers(d.errs, err)
}

// batchQueue returns the queue that a call with n entries is about.
func (b *core) batchQueue(ctx context.Context, name string, n int) (*liveQueue, error) {
	q, err := b.queues.get(name)
	if err == nil && n > 0 {
		err = queue.CheckEntries(n, "entry")
	}
	if err == nil {
		err = ctx.Err()
	}
	return q, err
}

// answers are the errors of the entries of a call: nil when all succeeded, and for each
// entry the same when the whole call failed.
func answers(errs []error, whole error) []error {
	if whole != nil {
		return repeated(whole, len(errs))
	}
	if slices.IndexFunc(errs, func(err error) bool { return err != nil }) < 0 {
		return nil
	}
	return errs
}

// repeated answers each of n entries with the same error.
func repeated(err error, n int) []error { return slices.Repeat([]error{err}, max(1, n)) }

// deletion is the request of one Delete or Expire.
type deletion struct {
	q        *liveQueue
	expired  bool
	messages []*message
	counted  int // those of them that a purge did not take before
	older    []olderReceipt
	errs     []error
	done     chan error
}

// olderReceipt is a receipt from before the store was opened, of a message
// that memory knows nothing of: the receive was not stored, so the message is
// visible, or it is gone.
type olderReceipt struct {
	m     *message // stands in for the message meanwhile
	index int
	text  string
	found bool
}

// add takes in one receipt. The queue's lock is held.
func (d *deletion) add(work *block, handle string, index int) error {
	q := d.q
	r, err := q.open(work, handle)
	if err != nil {
		return err
	}
	m := q.held[r.key]
	switch {
	case m == nil && r.epoch < q.epoch && r.key > q.low():
		d.older = append(d.older, olderReceipt{q.claim(r.key), index, handle, false})
	case m == nil || m.leaving:
		// Gone, or about to: the commit that this request waits for comes
		// after the one that takes it away.
	case !m.newest(r) && !q.set.fifo:
		// An older receipt of a standard queue: success without effect.
	case q.set.fifo && (!m.newest(r) || !m.inFlight):
		return errReceipt(handle, receiptExpired)
	default:
		m.leaving = true
		d.messages = append(d.messages, m)
	}
	return nil
}

const receiptExpired = "The receipt handle has expired."

// open reads a handle of this queue. The lock is held.
func (q *liveQueue) open(work *block, handle string) (receipt, error) {
	r, err := q.seal.open(work, handle)
	if err == nil && keyQueue(r.key) != q.number {
		err = errHandle(handle)
	}
	return r, err
}

// count returns the counter of an account in which the messages are booked.
func (d *deletion) count(k *counters) *int64 {
	if d.expired {
		return &k.expired
	}
	return &k.done
}

func (d *deletion) needs() (durable, space bool) { return false, false }

func (d *deletion) apply(t *tx) error {
	if t.gone(d.q) {
		return nil
	}
	k := t.counters(d.q)
	count := d.count(k)
	d.counted = 0
	for _, m := range d.messages {
		if keySeq(m.key) > k.floor {
			t.remove(m.key, m.stored)
			d.counted++
		}
	}
	*count += int64(d.counted)
	for i := range d.older {
		o := &d.older[i]
		found, err := t.exists(d.q, o.m.key)
		if err != nil {
			return err
		}
		if o.found = found; o.found && !d.q.isFIFO() {
			t.remove(o.m.key, true)
			*count++
		}
	}
	return nil
}

func (d *deletion) onCommit(err error) {
	q := d.q
	q.mu.Lock()
	for _, m := range d.messages {
		if err != nil {
			q.keep(m)
			q.storeReceive(m)
		} else {
			q.remove(m)
		}
	}
	if err == nil {
		*d.count(&q.counters) += int64(d.counted)
	}
	for _, o := range d.older {
		q.unclaim(o.m)
		switch {
		case err != nil || !o.found:
		case q.set.fifo:
			d.errs[o.index] = errReceipt(o.text, receiptExpired)
		default:
			*d.count(&q.counters)++
		}
	}
	q.wakeAfterRemoval(len(d.messages) + len(d.older))
	q.mu.Unlock()
	d.done <- err
}
