package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"tendril/queue"
)

// delay makes a failed message visible at a time. What waits behind it in its
// group is given back first.
func (w *Worker) delay(h *held, at, now time.Time) {
	w.release(h, now)
	o := order{h: h, kind: delay, receipt: h.receipt, at: at, until: h.hiddenUntil}
	w.change(o, w.lingerUntil(now, h.hiddenUntil.Add(-2*margin(w.opts.VisibilityTimeout))))
}

// change is the only way of a change of visibility into the box. A message has
// one there, or on its way, at a time: two could arrive in the wrong order. The
// next waits for the end of the one before it.
func (w *Worker) change(o order, due time.Time) {
	if o.h.changing {
		o.h.after = &o
		return
	}
	o.h.changing = true
	w.changes.put(o, due)
}

// changeOver ends a change that was answered or dropped; the next one may go.
func (w *Worker) changeOver(h *held, now time.Time) {
	h.changing = false
	if next := h.after; next != nil {
		h.after = nil
		w.change(*next, now)
	}
}

// tend looks after the visibility of everything that is held: receipts that
// ran out, extensions that are due, messages that waited too long.
func (w *Worker) tend(now time.Time) {
	for _, h := range w.held {
		if h.stage != posting && h.stage != waiting && h.stage != postponed {
			continue
		}
		if !h.lapsed && !now.Before(h.hiddenUntil) {
			w.lapse(h)
			continue
		}
		if h.stage == postponed && !h.lapsed && h.spent(w.opts.VisibilityTimeout, now) {
			w.unkeep(h, now)
			continue
		}
		w.prolong(h, now)
	}
	w.trim(now)
}

// prolong extends the visibility of a message if that is due.
func (w *Worker) prolong(h *held, now time.Time) {
	if v := h.extension(w.opts.VisibilityTimeout, now); v > 0 {
		w.change(order{h: h, kind: extend, receipt: h.receipt, visibility: v, until: h.hiddenUntil}, now)
	}
}

// changeable drops the extensions that nobody needs any more, and the other
// changes whose receipt has lapsed. What stays is about to be sent.
func (w *Worker) changeable(batch []order, now time.Time) []order {
	kept := batch[:0]
	for _, o := range batch {
		switch {
		case o.kind == extend && (o.h.stage == gone || o.h.stage == deleting || o.h.lapsed || o.receipt != o.h.receipt):
			w.changeOver(o.h, now)
		case !now.Before(o.until):
			w.changeFailed(o, errVisibilityOver, true, now)
			w.changeOver(o.h, now)
		case o.kind == extend:
			o.h.extended = true
			kept = append(kept, o)
		default:
			o.visibility = max(o.at.Sub(now), 0)
			kept = append(kept, o)
		}
	}
	return kept
}

// sendChanges makes one call.
func (w *Worker) sendChanges(batch []order) {
	changes := make([]queue.VisibilityChange, len(batch))
	for i := range batch {
		changes[i] = queue.VisibilityChange{ReceiptHandle: batch[i].receipt, Visibility: batch[i].visibility,
			Unread: batch[i].kind == giveBack}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(w.callCtx, callTimeout)
	errs := w.queue.ChangeVisibility(ctx, changes)
	cancel()
	now := time.Now()
	w.mu.Lock()
	w.observe(now)
	w.changesReturned(batch, errs, start, now)
	w.flush(now)
	w.checkDrained()
	w.unlock()
}

// changesReturned takes the results of one call.
func (w *Worker) changesReturned(batch []order, errs []error, start, now time.Time) {
	var extended, given, answered int
	for i, o := range batch {
		err := entryErr(errs, i)
		v := judge(err)
		if v == fine || v == worthless {
			answered++
		}
		if o.kind == extend {
			if w.extensionReturned(o, err, v, start, now) {
				extended++
			}
			continue
		}
		if v != fine {
			w.changeAgain(o, err, v, start, now)
			continue
		}
		w.changeOver(o.h, now)
		if o.kind == giveBack {
			given++
		}
	}
	w.changes.returned(now, answered == 0, rand.Float64())
	w.status.counts.Extended += int64(extended)
	w.status.counts.Returned += int64(given)
	if f := w.events.Extended; f != nil && extended > 0 {
		event := Extended{Messages: extended, Duration: now.Sub(start)}
		w.note(func() { f(event) })
	}
	if f := w.events.Returned; f != nil && given > 0 {
		event := Returned{Messages: given}
		w.note(func() { f(event) })
	}
}

// extensionReturned takes the result of one extension and reports whether the
// message is hidden for longer now.
func (w *Worker) extensionReturned(o order, err error, v verdict, start, now time.Time) bool {
	h := o.h
	if v == fine && o.receipt == h.receipt {
		h.hide(start, o.visibility)
	}
	if v != fine && o.receipt == h.receipt && h.stage != gone && h.stage != deleting {
		w.extensionFailed(o, err, v, now)
	}
	if h.after != nil && h.hiddenUntil.After(h.after.until) {
		h.after.until = h.hiddenUntil
	}
	w.changeOver(h, now)
	return v == fine
}

// extensionFailed decides when to try an extension again.
func (w *Worker) extensionFailed(o order, err error, v verdict, now time.Time) {
	h := o.h
	w.changeFailed(o, err, v == worthless, now)
	switch v {
	case worthless:
		h.hiddenUntil = now
		if !h.lapsed {
			w.lapse(h)
		}
	case refused:
		h.nextExtend = now.Add(refusedLimit)
	default:
		h.nextExtend = now.Add(min(2*time.Second, w.opts.VisibilityTimeout/16))
	}
}

// changeAgain puts back a delay or a give-back that failed. One that may have
// been applied is only good as long as the message is hidden in either case:
// after that it could make visible what another worker has in hand.
func (w *Worker) changeAgain(o order, err error, v verdict, start, now time.Time) {
	o.tries++
	if end := start.Add(o.visibility); v == unknown && end.Before(o.until) {
		o.until = end
	}
	due := now.Add(again(o.tries, 100*time.Millisecond, 5*time.Second, rand.Float64()))
	final := v == refused || v == worthless || !due.Before(o.until) || w.callCtx.Err() != nil
	w.changeFailed(o, err, final, now)
	if final {
		w.changeOver(o.h, now)
		return
	}
	w.changes.put(o, due)
}

func (w *Worker) changeFailed(o order, err error, final bool, now time.Time) {
	w.status.failed("change of visibility", err, now)
	if f := w.events.ChangeFailed; f != nil {
		event := ChangeFailed{ID: o.h.msg.ID, Kind: o.kind.String(), Err: err, Final: final}
		w.note(func() { f(event) })
	}
}
