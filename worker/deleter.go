package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// callTimeout bounds one delete or change of visibility.
const callTimeout = 20 * time.Second

var errVisibilityOver = errors.New("the visibility timeout ran out before the delete was confirmed")

// remove begins to delete a message that is done or expired. Its slot is free
// already; the message is held until the delete is confirmed.
func (w *Worker) remove(h *held, now time.Time) {
	h.stage = deleting
	w.unconfirmed++
	w.turn(h)
	w.putDelete(h, now)
}

// putDelete puts the delete of the newest receipt into its box. It may wait
// for company, but not into the last of its visibility.
func (w *Worker) putDelete(h *held, now time.Time) {
	m := margin(w.opts.VisibilityTimeout)
	o := order{h: h, kind: removal, receipt: h.receipt, until: h.hiddenUntil.Add(-m)}
	if h.lapsed {
		o.until = now.Add(callTimeout) // the queue is the judge
	}
	w.deletes.put(o, w.lingerUntil(now, h.hiddenUntil.Add(-2*m)))
}

// lingerUntil returns when an order that may linger has to go at the latest.
func (w *Worker) lingerUntil(now, latest time.Time) time.Time {
	due := now.Add(w.opts.DeleteLinger)
	if w.phase != running || latest.Before(now) {
		return now
	}
	if latest.Before(due) {
		return latest
	}
	return due
}

// flush makes the calls that are due.
func (w *Worker) flush(now time.Time) {
	for batch := w.deletes.cut(now); batch != nil; batch = w.deletes.cut(now) {
		if batch = w.deletable(batch, now); len(batch) == 0 {
			w.deletes.calls--
			continue
		}
		w.status.counts.DeleteCalls++
		w.tasks.Go(func() { w.sendDeletes(batch) })
	}
	for batch := w.changes.cut(now); batch != nil; batch = w.changes.cut(now) {
		if batch = w.changeable(batch, now); len(batch) == 0 {
			w.changes.calls--
			continue
		}
		w.status.counts.ChangeCalls++
		w.tasks.Go(func() { w.sendChanges(batch) })
	}
	w.wakeAt(w.deletes.next())
	w.wakeAt(w.changes.next())
}

// deletable gives up those deletes whose visibility is over, unless deletes
// are refused: then they wait for somebody to lift that.
func (w *Worker) deletable(batch []order, now time.Time) []order {
	if w.gate.shut[deleteRefused] && w.phase == running {
		return batch
	}
	kept := batch[:0]
	for _, o := range batch {
		switch {
		case o.h.stage != deleting || o.receipt != o.h.receipt: // confirmed, or a newer receipt took over
		case o.tries > 0 && now.After(o.until):
			w.deleteLost(o, errVisibilityOver, now)
		default:
			kept = append(kept, o)
		}
	}
	return kept
}

// sendDeletes makes one call, or two where some messages are done and others
// expired.
func (w *Worker) sendDeletes(batch []order) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(w.callCtx, callTimeout)
	errs := w.deleteAll(ctx, batch)
	cancel()
	now := time.Now()
	w.mu.Lock()
	w.observe(now)
	w.deletesReturned(batch, errs, start, now)
	w.dispatch(now)
	w.flush(now)
	w.poll(now)
	w.checkDrained()
	w.unlock()
}

// deleteAll deletes what is done and what is expired, and returns one error for
// each order.
func (w *Worker) deleteAll(ctx context.Context, batch []order) []error {
	errs := make([]error, len(batch))
	for _, expired := range [...]bool{false, true} {
		remove := w.queue.Delete
		if expired {
			remove = w.queue.Expire
		}
		receipts, places := make([]string, 0, len(batch)), make([]int, 0, len(batch))
		for i, o := range batch {
			if o.h.expired == expired {
				receipts, places = append(receipts, o.receipt), append(places, i)
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

// deletesReturned takes the results of one call.
func (w *Worker) deletesReturned(batch []order, errs []error, start, now time.Time) {
	var n, answered int
	var refusal error
	for i, o := range batch {
		err := entryErr(errs, i)
		switch v := judge(err); v {
		case fine:
			n++
			answered++
			w.deleteConfirmed(o, start, now)
		case worthless:
			answered++
			w.deleteLost(o, err, now)
		default:
			if v == refused {
				refusal = err
			}
			w.deleteAgain(o, err, v, now)
		}
	}
	w.deletes.returned(now, answered == 0, rand.Float64())
	if answered > 0 {
		w.pace.called(now.Sub(start), now)
	}
	switch {
	case answered > 0:
		w.lift(deleteRefused, now)
	case refusal != nil:
		w.deletes.hold = now.Add(again(w.deletes.fails, refusedFirst, refusedLimit, rand.Float64()))
		w.shut(deleteRefused, "the queue refuses deletes, so messages would run again and again: "+refusal.Error(), now)
	}
	w.status.counts.Deleted += int64(n)
	if f := w.events.Deleted; f != nil && n > 0 {
		event := Deleted{Messages: n, Duration: now.Sub(start)}
		w.note(func() { f(event) })
	}
}

// deleteConfirmed ends a message. A standard queue confirms the delete of an
// outdated receipt too, without effect; so one that was sent after the end of
// the visibility proves nothing, and the message stays remembered as done.
func (w *Worker) deleteConfirmed(o order, sent, now time.Time) {
	h := o.h
	if h.stage != deleting || o.receipt != h.receipt {
		return // a newer receipt has a delete of its own
	}
	w.unconfirmed--
	w.forget(h)
	w.unposted.forget(h.life)
	switch {
	case w.opts.FIFO || sent.Before(h.hiddenUntil):
		w.done.forget(h.msg.ID)
	case !h.lapsed && !h.expired:
		w.done.put(h.msg.ID, struct{}{})
	}
	w.advance(h, now)
}

// deleteAgain puts back a delete that was not applied, or not known to be.
func (w *Worker) deleteAgain(o order, err error, v verdict, now time.Time) {
	o.tries++
	if (v == refused && w.phase != running) || w.callCtx.Err() != nil {
		w.deleteLost(o, err, now)
		return
	}
	w.status.failed("delete", err, now)
	w.noteDeleteFailed(o, err, false)
	w.deletes.put(o, now.Add(again(o.tries, 100*time.Millisecond, 5*time.Second, rand.Float64())))
}

// deleteLost gives a delete up. The message is remembered as done, so that
// this process deletes it unposted if it comes again; one whose receipt had
// lapsed before the success was read is not.
func (w *Worker) deleteLost(o order, err error, now time.Time) {
	h := o.h
	if h.stage != deleting || o.receipt != h.receipt {
		return
	}
	w.unconfirmed--
	w.status.counts.DeletesLost++
	if w.phase != running {
		w.status.undeleted++
	}
	w.status.failed("delete", err, now)
	w.noteDeleteFailed(o, err, true)
	if !h.lapsed && !h.expired {
		w.done.put(h.msg.ID, struct{}{})
	}
	w.release(h, now)
}

func (w *Worker) noteDeleteFailed(o order, err error, final bool) {
	if f := w.events.DeleteFailed; f != nil {
		event := DeleteFailed{ID: o.h.msg.ID, Err: err, Final: final}
		w.note(func() { f(event) })
	}
}
