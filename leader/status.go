package leader

import "time"

// Status is what an elector knows, for people.
type Status struct {
	// Name is the lease's name, Owner this instance's.
	Name, Owner string
	// Term is the term in which this instance leads, 0 when it does not.
	Term int64
	// TrustLeft is how long this instance remains leader without another
	// renewal; 0 when it is not the leader.
	TrustLeft time.Duration
	// Leader is who holds the lease, "" when nobody does as far as is known: it
	// was never written, was given back, or ran out. LeaderTerm and LeaderData
	// are its term and what it tells about itself.
	Leader     string
	LeaderTerm int64
	LeaderData string
	// Age is how long ago this instance saw the holder's last renewal; Checked
	// how long ago it looked at all, -1 when it never did.
	Age, Checked time.Duration
	// Failures counts the store's failures since its last success; Err is the
	// last of them, since FailingSince. While there are any, this instance
	// does not become the leader.
	Failures     int
	Err          error
	FailingSince time.Time
}

// Status returns what is known now. It asks nobody.
func (e *Elector) Status() Status {
	term, _ := e.gate.holds()
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.status
	s.Term, s.TrustLeft, s.Checked = term, e.gate.left(), -1
	if !e.readAt.IsZero() {
		s.Checked = time.Since(e.readAt)
	}
	if s.Leader != "" {
		s.Age = time.Since(e.seenAt)
		if s.Age >= e.holds {
			s.Leader, s.LeaderData = "", ""
		}
	}
	return s
}

// publish puts what the core knows where Status finds it, and tells listeners
// when another instance took the lead.
func (e *Elector) publish() {
	c := &e.core
	held := c.seen.Version != "" && !c.seen.Released && time.Now().Before(c.expiry())
	e.mu.Lock()
	e.readAt, e.seenAt, e.holds = c.readAt, c.seenAt, c.expiry().Sub(c.seenAt)
	e.status.Leader, e.status.LeaderTerm, e.status.LeaderData = "", c.seen.Term, ""
	if held {
		e.status.Leader, e.status.LeaderData = c.seen.Owner, c.seen.Data
	}
	if c.failures == 0 {
		e.status.Failures, e.status.Err, e.status.FailingSince = 0, nil, time.Time{}
	}
	e.mu.Unlock()

	if !held || c.mine(c.seen) {
		if c.term > 0 {
			e.following = Following{}
		}
		return
	}
	if now := (Following{Name: e.opts.Name, Owner: c.seen.Owner, Term: c.seen.Term}); now != e.following {
		e.following = now
		e.events.dispatch(func() { call(e.opts.Events.Following, now) })
	}
}
