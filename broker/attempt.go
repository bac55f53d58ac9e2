package broker

import "time"

// attemptWindow is how long a receive with an attempt id can be repeated.
const attemptWindow = 5 * time.Minute

// attempt is a receive of a FIFO queue that can be repeated: the same id
// within five minutes gives the same messages with the same receipts, and
// their visibility starts again, as long as none of them was deleted, changed
// or became visible. Attempts are not kept over a restart.
type attempt struct {
	expires int64 // reading
	given   []given
}

// repeat answers a receive whose attempt id is known. The lock is held.
func (q *liveQueue) repeat(r *receive) []given {
	a := q.attempts[r.attempt]
	now := q.b.clock.now()
	if r.attempt == "" || a == nil || a.expires <= now {
		return nil
	}
	for _, g := range a.given {
		if !g.m.flying || g.m.leaving || !g.m.newest(g.receipt) {
			delete(q.attempts, r.attempt)
			return nil
		}
	}
	for _, g := range a.given {
		g.m.until = now + int64(r.visibility)
		if r.visibility == 0 {
			q.land(g.m)
		} else {
			q.flight.fix(g.m)
		}
		q.store(g.m)
	}
	q.arm()
	return append([]given(nil), a.given...)
}

// noteAttempt remembers a receive with an attempt id. The lock is held.
func (q *liveQueue) noteAttempt(r *receive, list []given) {
	if r.attempt == "" {
		return
	}
	now := q.b.clock.now()
	for id, a := range q.attempts {
		if a.expires <= now {
			delete(q.attempts, id)
		}
	}
	if q.attempts == nil {
		q.attempts = map[string]*attempt{}
	}
	a := &attempt{expires: now + int64(attemptWindow)}
	for _, g := range list {
		g.content = nil
		a.given = append(a.given, g)
	}
	q.attempts[r.attempt] = a
}

// forgetAttempt ends the repeatability of the receive that gave out m, since
// its visibility was changed. The lock is held.
func (q *liveQueue) forgetAttempt(m *message) {
	for id, a := range q.attempts {
		for _, g := range a.given {
			if g.m == m {
				delete(q.attempts, id)
				break
			}
		}
	}
}
