package worker

import "time"

// trim takes from the head of the line-up what may not be started any more.
func (w *Worker) trim(now time.Time) {
	for h := w.ready.first(); h != nil; h = w.ready.first() {
		if now.Before(h.hiddenUntil) && !h.stale(w.opts.VisibilityTimeout, now) {
			return
		}
		w.ready.pop()
		w.giveBackGroup(h, now)
	}
	w.flushReturning(now)
}

// withdraw gives back everything that was received and not posted.
func (w *Worker) withdraw(now time.Time) {
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
func (w *Worker) giveBack(h *held, now time.Time) {
	w.forget(h)
	w.skip(h.msg.ID)
	if !now.Before(h.hiddenUntil) {
		if !h.lapsed {
			w.lapse(h)
		}
		return
	}
	o := order{h: h, kind: giveBack, receipt: h.receipt, until: h.hiddenUntil}
	if h.extending {
		h.after = &o
		return
	}
	w.returning = append(w.returning, o)
}

// flushReturning sends the give-backs. While the gate is closed they wait for
// the end of the open polls, which would only receive them again.
func (w *Worker) flushReturning(now time.Time) {
	if len(w.returning) == 0 || (!w.gate.open() && len(w.polls.open) > 0) {
		return
	}
	for _, o := range w.returning {
		w.changes.put(o, now)
	}
	clear(w.returning)
	w.returning = w.returning[:0]
	w.flush(now)
}
