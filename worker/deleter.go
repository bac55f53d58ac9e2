package worker

import (
	"context"
	"math/rand/v2"
	"time"
)

// deleter deletes messages that are done or expired, in tens.
type deleter struct {
	*core
	queue     Queue
	messages  *inventory
	gate      *gate
	changes   *visibilityChanger
	deletes   batcher
	abandoned int // deletes given up while stopping
	// called takes how long a call took that the queue answered.
	called func(took time.Duration, now time.Time)
}

// remove begins to delete a message. Its slot is free already; the message is held
// until the delete is confirmed.
func (d *deleter) remove(h *held, now time.Time) {
	h.stage = deleting
	d.messages.unconfirmed++
	d.messages.deleteBegins(h)
	d.put(h, now)
}

// put makes the delete of the newest receipt pending. It may wait for others, but not
// into the last of its visibility.
func (d *deleter) put(h *held, now time.Time) {
	m := margin(d.opts.VisibilityTimeout)
	p := pending{h: h, purpose: deleteMessage, receipt: h.receipt, until: h.hiddenUntil.Add(-m)}
	if h.lapsed {
		p.until = now.Add(callTimeout) // the queue is the judge
	}
	d.deletes.put(p, d.lingerUntil(now, h.hiddenUntil.Add(-2*m)))
}

// flush makes the calls that are due.
func (d *deleter) flush(now time.Time) {
	for batch := d.deletes.cut(now); batch != nil; batch = d.deletes.cut(now) {
		if batch = d.sendable(batch, now); len(batch) == 0 {
			d.deletes.calls--
			continue
		}
		d.stats.counts.DeleteCalls++
		var errs []error
		d.call(func(ctx context.Context) { errs = d.send(ctx, batch) },
			func(start, now time.Time) { d.answered(batch, errs, start, now) })
	}
	d.wakeAt(d.deletes.next())
}

// sendable gives up those deletes whose visibility is over, unless deletes
// are refused: then they wait for somebody to lift that.
func (d *deleter) sendable(batch []pending, now time.Time) []pending {
	if d.gate.has(DeleteRefused) && d.phase == running {
		return batch
	}
	kept := batch[:0]
	for _, p := range batch {
		switch {
		case !d.isDue(p): // confirmed, or a newer receipt took over
		case p.tries > 0 && now.After(p.until):
			d.lost(p, errVisibilityOver, now)
		default:
			kept = append(kept, p)
		}
	}
	return kept
}

// isDue reports whether a delete is still wanted: not confirmed by another, and of the
// newest receipt, which has a delete of its own.
func (d *deleter) isDue(p pending) bool { return p.h.stage == deleting && p.receipt == p.h.receipt }

// send deletes what is done and what is expired, and returns one error for each entry.
func (d *deleter) send(ctx context.Context, batch []pending) []error {
	errs := make([]error, len(batch))
	for _, expired := range [...]bool{false, true} {
		remove := d.queue.Delete
		if expired {
			remove = d.queue.Expire
		}
		receipts, places := make([]string, 0, len(batch)), make([]int, 0, len(batch))
		for i, p := range batch {
			if p.h.expired == expired {
				receipts, places = append(receipts, p.receipt), append(places, i)
			}
		}
		if len(receipts) == 0 {
			continue
		}
		answered := remove(ctx, receipts)
		for i, place := range places {
			errs[place] = entryErr(answered, i)
		}
	}
	return errs
}

// answered takes the results of one call.
func (d *deleter) answered(batch []pending, errs []error, start, now time.Time) {
	var deleted, conclusive int
	var refusal error
	for i, p := range batch {
		err := entryErr(errs, i)
		switch class := classify(err); class {
		case applied:
			deleted++
			conclusive++
			d.confirmed(p, start, now)
		case invalidReceipt:
			conclusive++
			d.lost(p, err, now)
		default:
			if class == refused {
				refusal = err
			}
			d.tryAgain(p, err, class, now)
		}
	}
	d.deletes.returned(now, conclusive == 0, rand.Float64())
	switch {
	case conclusive > 0:
		d.called(now.Sub(start), now)
		d.gate.lift(DeleteRefused, now)
	case refusal != nil:
		d.deletes.hold = now.Add(retryWait(d.deletes.fails, refusedFirst, refusedLimit, rand.Float64()))
		d.gate.close(DeleteRefused,
			"the queue refuses deletes, so messages would run again and again: "+refusal.Error(), now, now)
	}
	d.stats.counts.Deleted += int64(deleted)
	if deleted > 0 {
		notify(d.core, d.events.Deleted, Deleted{Messages: deleted, Duration: now.Sub(start)})
	}
}

// confirmed ends a message. A standard queue confirms the delete of an
// outdated receipt too, without effect; so one that was sent after the end of
// the visibility proves nothing, and the message stays remembered as done.
func (d *deleter) confirmed(p pending, sent, now time.Time) {
	if !d.isDue(p) {
		return
	}
	h, m := p.h, d.messages
	m.unconfirmed--
	m.forget(h)
	m.unposted.forget(h.life)
	switch {
	case d.opts.FIFO || sent.Before(h.hiddenUntil):
		m.done.forget(h.msg.ID)
	case !h.lapsed && !h.expired:
		m.done.put(h.msg.ID, struct{}{})
	}
	m.deleteEnds(h, now)
}

// tryAgain puts back a delete that was not applied, or not known to be.
func (d *deleter) tryAgain(p pending, err error, class errorClass, now time.Time) {
	p.tries++
	if (class == refused && d.phase != running) || d.callCtx.Err() != nil {
		d.lost(p, err, now)
		return
	}
	d.failed(p, err, false, now)
	d.deletes.put(p, p.nextTry(now))
}

// lost gives a delete up. The message is remembered as done, so that
// this process deletes it unposted if it comes again; one whose receipt had
// lapsed before the success was read is not.
func (d *deleter) lost(p pending, err error, now time.Time) {
	if !d.isDue(p) {
		return
	}
	h := p.h
	d.messages.unconfirmed--
	d.stats.counts.DeletesLost++
	if d.phase != running {
		d.abandoned++
	}
	d.failed(p, err, true, now)
	if !h.lapsed && !h.expired {
		d.messages.done.put(h.msg.ID, struct{}{})
	}
	d.changes.release(h, now)
}

func (d *deleter) failed(p pending, err error, final bool, now time.Time) {
	d.stats.failed("delete", err, now)
	notify(d.core, d.events.DeleteFailed, DeleteFailed{ID: p.h.msg.ID, Err: err, Final: final})
}
