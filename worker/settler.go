package worker

import "time"

// trim takes from the head of the line-up what may not be started any more.
func (w *Worker) trim(now time.Time) {
	for h := w.ready.first(); h != nil; h = w.ready.first() {
		if now.Before(h.hiddenUntil) && !w.stale(h, now) {
			return
		}
		w.ready.pop()
		if !w.stepAside(h, now) {
			w.giveBackGroup(h, now)
		}
	}
	w.flushReturning(now)
}

// withdraw gives back everything that was received and not posted.
func (w *Worker) withdraw(now time.Time) {
	w.unkeep(nil, now)
	for h := w.ready.first(); h != nil; h = w.ready.first() {
		w.ready.pop()
		w.giveBackGroup(h, now)
	}
	for _, g := range w.groups {
		w.giveBackWaiting(g, now)
	}
	w.flushReturning(now)
}

// giveBackGroup gives back a message and all that waits behind it, the last
// one first.
func (w *Worker) giveBackGroup(h *held, now time.Time) {
	w.disband(h, now)
	w.giveBack(h, now)
}

// giveBack makes a message that was never posted visible again. One whose
// visibility ran out is dropped: it may be another worker's by now.
func (w *Worker) giveBack(h *held, now time.Time) { w.giveBackFor(h, 0, now) }

// giveBackFor is giveBack of a message that is not to come again before a time.
func (w *Worker) giveBackFor(h *held, pause time.Duration, now time.Time) {
	w.forget(h)
	w.skip(h.life, !w.opts.UncountedReturns || !now.Before(h.hiddenUntil))
	if !now.Before(h.hiddenUntil) {
		if !h.lapsed {
			w.lapse(h)
		}
		return
	}
	o := order{h: h, kind: giveBack, receipt: h.receipt, at: now.Add(min(pause, max(h.left(now), 0))),
		until: h.hiddenUntil}
	if h.changing {
		h.after = &o
		return
	}
	w.returning = append(w.returning, o)
}

// flushReturning sends the give-backs. While the gate is closed, or once deliveries
// are cut off, they wait for the end of the open polls, which would only receive them
// again.
func (w *Worker) flushReturning(now time.Time) {
	if len(w.returning) == 0 {
		return
	}
	if over := !w.gate.open() || w.workCtx.Err() != nil; over && len(w.polls.open) > 0 {
		return
	}
	for _, o := range w.returning {
		w.change(o, now)
	}
	clear(w.returning)
	w.returning = w.returning[:0]
	w.flush(now)
}
