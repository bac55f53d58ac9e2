package worker

import "time"

// rest begins the pool's sleep once every queue was found empty. A queue with
// work in hand or a receive open is not; one that cannot be received from does
// not count.
func (p *Pool) rest(now time.Time) {
	if p.opts.Sleep == 0 {
		return
	}
	for _, m := range p.members {
		if m.phase == running && m.gate.open() && !m.share.emptied && (len(m.polls.open) > 0 || m.ready.len() > 0) {
			return
		}
	}
	p.restUntil = now.Add(p.opts.Sleep)
	for _, m := range p.members {
		m.share.emptied = false
		m.wakeAt(p.restUntil)
	}
	if f := p.events.Rested; f != nil {
		event := Rested{For: p.opts.Sleep}
		p.mu.note(func() { f(event) })
	}
}

// resting reports whether a member must not receive now: the pool sleeps, or
// the member was found empty and the round is about to end.
func (p *Pool) resting(w *Worker, now time.Time) bool {
	if p.opts.Sleep == 0 {
		return false
	}
	return now.Before(p.restUntil) || (w.share.emptied && p.roundLeft(w, now) < time.Second)
}

// restDue returns when the pool's sleep ends, zero without a pool.
func (w *Worker) restDue() time.Time {
	if w.pool == nil {
		return time.Time{}
	}
	return w.pool.restUntil
}

// roundLeft returns how long the receives of the other members still wait.
func (p *Pool) roundLeft(w *Worker, now time.Time) (left time.Duration) {
	for _, m := range p.members {
		if m == w {
			continue
		}
		for o := range m.polls.open {
			left = max(left, o.start.Add(o.wait).Sub(now))
		}
	}
	return left
}

// waitFor returns how long a member's next receive waits. One that was found
// empty already listens until the round ends, so that all sleep together.
func (p *Pool) waitFor(w *Worker, now time.Time) time.Duration {
	if p.opts.Sleep == 0 || !w.share.emptied {
		return w.opts.WaitTime
	}
	return clamp(p.roundLeft(w, now).Truncate(time.Second), time.Second, w.opts.WaitTime)
}
