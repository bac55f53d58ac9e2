package worker

import (
	"context"
	"slices"
	"time"
)

// deleter deletes messages that are done, expired or dead-lettered, in tens.
type deleter struct {
	*core
	queue      Queue
	messages   *inventory
	gate       *gate
	visibility *visibilityChanger
	pace       *pace
	deletes    batcher
	abandoned  int // deletes given up while stopping
}

// remove begins to delete a message. Its slot is free already; the message is held
// until the delete is confirmed.
func (d *deleter) remove(h *held, now time.Time) {
	h.stage = deleting
	d.messages.unconfirmed++
	if g := h.group; g != nil { // after the last that is active the next one will want a slot soon
		g.deleting++
		d.messages.turnIfLast(g)
	}
	d.put(h, now)
}

// put makes the delete of the newest receipt pending. It may wait for others.
func (d *deleter) put(h *held, now time.Time) {
	p := pending{h: h, purpose: deleteMessage, receipt: h.receipt, until: h.hiddenUntil.Add(-d.margin)}
	if h.lapsed {
		p.until = now.Add(callTimeout) // the queue is the judge
	}
	d.deletes.put(p, d.lingerUntil(now, h.hiddenUntil))
}

// flush makes the calls that are due, those for expired messages apart.
func (d *deleter) flush(now time.Time) {
	for batch := d.deletes.cut(now); batch != nil; batch = d.deletes.cut(now) {
		batch = d.sendable(batch, now)
		if isExpired := func(p pending) bool { return p.h.isExpired }; slices.ContainsFunc(batch, isExpired) {
			d.send(slices.DeleteFunc(slices.Clone(batch), func(p pending) bool { return !p.h.isExpired }), d.queue.Expire)
			batch = slices.DeleteFunc(batch, isExpired)
		}
		d.send(batch, d.queue.Delete)
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
		case !p.isWanted():
		case p.tries > 0 && now.After(p.until):
			d.lost(p, errVisibilityOver, now)
		default:
			kept = append(kept, p)
		}
	}
	return kept
}

// send makes one call, unless there is nothing to delete.
func (d *deleter) send(batch []pending, remove func(context.Context, []string) []error) {
	if len(batch) == 0 {
		return
	}
	receipts := make([]string, len(batch))
	for i := range batch {
		receipts[i] = batch[i].receipt
	}
	d.deletes.calls++
	d.stats.counts.DeleteCalls++
	d.call(func(ctx context.Context) []error { return remove(ctx, receipts) },
		func(errs []error, start, now time.Time) { d.answered(batch, errs, start, now) })
}

// answered takes the results of one call.
func (d *deleter) answered(batch []pending, errs []error, start, now time.Time) {
	var deleted, conclusive int
	var refusal error
	for i := range batch {
		p, err := &batch[i], entryErr(errs, i)
		switch class := classify(err); class {
		case applied:
			deleted++
			conclusive++
			if p.isWanted() {
				d.confirmed(p.h, start, now)
			}
		case invalidReceipt:
			conclusive++
			d.lost(*p, err, now)
		default:
			if class == refused {
				refusal = err
			}
			d.tryAgain(*p, err, class, now)
		}
	}
	d.deletes.returned(batch, now, conclusive == 0, d.opts.Random())
	switch {
	case conclusive > 0:
		d.pace.called(now.Sub(start), now)
		d.gate.lift(DeleteRefused, now)
	case refusal != nil:
		d.deletes.hold = now.Add(retryWait(d.deletes.fails, refusedFirst, refusedLimit, d.opts.Random()))
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
func (d *deleter) confirmed(h *held, sent, now time.Time) {
	m := d.messages
	m.unconfirmed--
	m.forget(h)
	delete(m.unposted.values, life(h.msg.ID, h.receives, h.receivesHere))
	switch {
	case d.opts.FIFO || sent.Before(h.hiddenUntil):
		delete(m.done.values, h.msg.ID)
	case !h.lapsed && !h.isExpired:
		m.done.put(h.msg.ID, struct{}{})
	}
	if g := h.group; g != nil {
		g.deleting--
		m.leaveGroup(h, now)
	}
}

// tryAgain puts back a delete that was not applied, or not known to be.
func (d *deleter) tryAgain(p pending, err error, class errorClass, now time.Time) {
	p.tries++
	if (class == refused && d.phase != running) || d.callCtx.Err() != nil {
		d.lost(p, err, now)
		return
	}
	d.failed(p, err, false, now)
	d.deletes.put(p, p.nextTry(now, d.opts.Random()))
}

// lost gives a delete up. The message is remembered as done, so that
// this process deletes it unposted if it comes again; one whose receipt had
// lapsed before the success was read is not.
func (d *deleter) lost(p pending, err error, now time.Time) {
	if !p.isWanted() {
		return
	}
	h := p.h
	d.messages.unconfirmed--
	d.stats.counts.DeletesLost++
	if d.phase != running {
		d.abandoned++
	}
	d.failed(p, err, true, now)
	if !h.lapsed && !h.isExpired {
		d.messages.done.put(h.msg.ID, struct{}{})
	}
	d.visibility.release(h, now)
}

func (d *deleter) failed(p pending, err error, final bool, now time.Time) {
	d.stats.failed("delete", err, now)
	notify(d.core, d.events.DeleteFailed, DeleteFailed{ID: p.h.msg.ID, Err: err, Final: final,
		DeadLetter: p.h.letter != nil})
}
