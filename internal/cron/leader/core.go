package leader

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"tendril/queue"
)

// core decides what to do next about one lease: a state, changed by what the
// store answered and by the time, without any I/O. Times are compared by their
// monotonic readings alone.
type core struct {
	rules
	// session begins every Version this instance writes, and no other.
	session string
	writes  int
	// highest is the largest term ever seen.
	highest int64

	// seen is the lease as last observed; seenAt is when its Version was
	// observed first, readAt when last. known is false when something may have
	// changed it since.
	seen           queue.Lease
	seenAt, readAt time.Time
	known          bool
	// pause is how long to wait from readAt to the next look at another's lease.
	pause time.Duration

	// pending is a swap whose outcome is unknown.
	pending *attempt
	// failures counts store errors in a row; nothing is tried before notBefore.
	failures  int
	notBefore time.Time

	// term is what this instance leads in, 0 when it does not lead; trusted is
	// the end of its trust window, renewAt when it renews.
	term    int64
	trusted time.Time
	renewAt time.Time
}

// rules are the constants of a core.
type rules struct {
	owner, data   string
	lease, renew  time.Duration
	margin        time.Duration
	chance        func() float64 // from 0 to 1, to spread what many instances do
	firstBackoff  time.Duration
	leaderBackoff time.Duration // the longest pause between two tries to renew
}

// newCore returns the core of an instance that does not know the lease yet.
func newCore(o Options) core {
	return core{session: rand.Text(), rules: rules{owner: o.Owner, data: o.Data, lease: o.Lease, renew: o.Renew,
		margin: o.Margin, chance: o.Random, firstBackoff: o.Renew / 25, leaderBackoff: o.Renew / 5}}
}

// attempt is one swap with its one version token, however often it is tried.
type attempt struct {
	old, next queue.Lease
	// start is the time before the first try. What the lease promises counts
	// from here, since any of the tries may be the one that was applied.
	start time.Time
	// wall is the time of day at start, to notice that the machine stood still.
	wall time.Time
}

// action is what a core wants done.
type action int

const (
	wait action = iota
	read
	swap
)

// step is one action: wait until a time, read the lease, or make an attempt.
type step struct {
	do      action
	until   time.Time
	attempt *attempt
}

// decide returns the next step. It asks for the same attempt again until its
// outcome is known.
func (c *core) decide(now time.Time) step {
	if c.term > 0 && !now.Before(c.trusted) {
		c.lose()
	}

	switch {
	case now.Before(c.notBefore):
		return step{do: wait, until: c.bounded(c.notBefore)}
	case c.pending != nil:
		return step{do: swap, attempt: c.pending}
	case c.term > 0 && now.Before(c.renewAt):
		return step{do: wait, until: c.bounded(c.renewAt)}
	case c.term > 0:
		return c.try(now, c.term)
	case !c.known:
		return step{do: read}
	case c.free():
		return c.try(now, max(c.highest, c.seen.Term)+1)
	}

	if next := earlier(c.readAt.Add(c.pause), c.expiry()); now.Before(next) {
		return step{do: wait, until: next}
	}
	return step{do: read}
}

// bounded makes no wait of a leader reach beyond its trust window.
func (c *core) bounded(until time.Time) time.Time {
	if c.term > 0 {
		return earlier(until, c.trusted)
	}
	return until
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// try begins an attempt at holding the lease in term.
func (c *core) try(now time.Time, term int64) step {
	c.pending = c.replace(now, queue.Lease{Owner: c.owner, Term: term, Duration: c.lease, Data: c.data})
	return step{do: swap, attempt: c.pending}
}

// replace puts a new version token on next.
func (c *core) replace(now time.Time, next queue.Lease) *attempt {
	c.writes++
	next.Version = fmt.Sprintf("%s-%d", c.session, c.writes)
	return &attempt{old: c.seen, next: next, start: now}
}

// free reports whether the lease may be taken: never written, given back, our
// own from a term that we have lost (no other can have led since), or
// unchanged for its whole duration, as a look after that time has shown. Without
// that look every instance would try to replace a dead leader, and all but one in vain.
func (c *core) free() bool {
	return c.seen.Version == "" || c.seen.Released || c.mine(c.seen) || !c.readAt.Before(c.expiry())
}

// expiry is when the lease that was seen has been unchanged for its duration.
func (c *core) expiry() time.Time {
	d := c.seen.Duration
	if d <= 0 { // no version of tendril writes that
		d = c.lease
	}
	return c.seenAt.Add(d)
}

// mine reports whether this very instance wrote the lease.
func (c *core) mine(l queue.Lease) bool { return strings.HasPrefix(l.Version, c.session+"-") }

// observed takes the stored lease from an answer of the store.
func (c *core) observed(now time.Time, l queue.Lease) {
	c.failures, c.notBefore = 0, time.Time{}
	if c.seenAt.IsZero() || l.Version != c.seen.Version {
		c.seenAt = now
	}
	c.seen, c.readAt, c.known = l, now, true
	c.highest = max(c.highest, l.Term)
	c.pause = c.renew - time.Duration(c.chance()*float64(c.renew)/4)
}

// swapped takes the answer to an attempt. It returns whether this instance now
// leads because of it; a lead held before may be lost by it.
func (c *core) swapped(now time.Time, a *attempt, won bool, current queue.Lease) (leads bool) {
	if c.term > 0 && !now.Before(c.trusted) {
		c.lose()
	}

	awaited := c.pending == a
	c.pending = nil
	if won = won || current.Version == a.next.Version; won {
		current = a.next
	}

	if !won {
		c.lose()
	}

	c.observed(now, current)
	trusted := a.start.Add(c.lease - c.margin)
	if !won || !awaited || !now.Before(trusted) {
		c.term = 0
		return false
	}

	c.term, c.trusted, c.renewAt = a.next.Term, trusted, a.start.Add(c.renew)
	return true
}

// lose ends the lead, if there is one, for good: its term is never held again.
// A swap under way no longer counts; the stored lease has to be read.
func (c *core) lose() {
	c.term, c.pending, c.known = 0, nil, false
}

// failed notes a store error and returns how long nothing is tried.
func (c *core) failed(now time.Time) time.Duration {
	longest := c.renew
	if c.term > 0 {
		longest = c.leaderBackoff
	}
	d := min(c.firstBackoff<<min(c.failures, 10), longest)
	d = d/2 + time.Duration(c.chance()*float64(d)/2)
	c.failures++
	c.notBefore = now.Add(d)
	return d
}

// giveBack returns the attempt that releases the lease, or false when it is
// not this instance's to release. The outcome of every earlier attempt has to
// be known.
func (c *core) giveBack(now time.Time) (*attempt, bool) {
	if !c.known || !c.mine(c.seen) || c.seen.Released {
		return nil, false
	}
	return c.replace(now, queue.Lease{Owner: c.owner, Term: c.seen.Term, Released: true, Data: c.data}), true
}
