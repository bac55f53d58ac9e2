package leader

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tendril/queue"
)

// core is the state machine of one lease. It does no I/O: its inputs are the store's responses and the time.
type core struct {
	opts *Options
	// session is the prefix of all Versions written by this instance.
	session string
	writes  int
	highest int64

	// The Version of seen was first observed at seenAt and last read at readAt. known is false if the lease may have
	// changed since.
	seen           queue.Lease
	seenAt, readAt time.Time
	known          bool
	nextRead       time.Time

	// pending is a swap whose outcome is unknown, or nil.
	pending *attempt
	// The store is not called before notBefore.
	failures  int
	notBefore time.Time

	// term is 0 while this instance does not lead. Its trust window ends at trusted.
	term    int64
	trusted time.Time
	renewAt time.Time
}

func newCore(o *Options) core { return core{opts: o, session: rand.Text()} }

// The version carries the announcement and the revision, because earlier versions of tendril preserve it.
const (
	announceMark = "#"
	revisionMark = "@"
)

func announcedBy(l queue.Lease) (announcement string, revision int64) {
	version, text, _ := strings.Cut(l.Version, revisionMark)
	_, announcement, _ = strings.Cut(version, announceMark)
	revision, _ = strconv.ParseInt(text, 10, 64)
	return announcement, revision
}

// attempt is a swap, possibly tried several times with the same version.
type attempt struct {
	old, next queue.Lease
	// The lease counts from the first try, because any try may have been applied.
	start time.Time
	// wall is the wall clock at start, which reveals a suspension.
	wall time.Time
}

type action int

const (
	wait action = iota
	read
	swap
)

type step struct {
	do      action
	until   time.Time
	attempt *attempt
}

func (c *core) decide(now time.Time) step {
	c.endExpiredTerm(now)
	switch {
	case now.Before(c.notBefore):
		return step{do: wait, until: c.capAtTrust(c.notBefore)}
	case c.pending != nil:
		return step{do: swap, attempt: c.pending}
	case c.term > 0 && now.Before(c.renewAt):
		return step{do: wait, until: c.capAtTrust(c.renewAt)}
	case c.term > 0:
		return c.startSwap(now, c.term)
	case !c.known:
		return step{do: read}
	case c.mayTake():
		return c.startSwap(now, max(c.highest, c.seen.Term)+1)
	case now.Before(c.nextRead):
		return step{do: wait, until: c.nextRead}
	}
	return step{do: read}
}

func (c *core) endExpiredTerm(now time.Time) {
	if c.term > 0 && !now.Before(c.trusted) {
		c.lose()
	}
}

func (c *core) capAtTrust(until time.Time) time.Time {
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

func (c *core) startSwap(now time.Time, term int64) step {
	c.pending = c.newAttempt(now, queue.Lease{Owner: c.opts.Owner, Term: term, Duration: c.opts.Lease, Data: c.opts.Data})
	return step{do: swap, attempt: c.pending}
}

func (c *core) newAttempt(now time.Time, next queue.Lease) *attempt {
	c.writes++
	next.Version = fmt.Sprintf("%s-%d", c.session, c.writes)
	if c.opts.Announce != nil {
		next.Version += announceMark + c.opts.Announce()
	}
	if c.opts.Revision != nil {
		next.Version += revisionMark + strconv.FormatInt(c.opts.Revision(), 10)
	}
	return &attempt{old: c.seen, next: next, start: now}
}

// mayTake reports whether the lease was never written, was released, is this instance's from a lost term, or was
// unchanged in a read after its expiry. Without that read, every instance would try to replace a dead leader.
func (c *core) mayTake() bool {
	return c.seen.Version == "" || c.seen.Released || c.isOwn(c.seen) || !c.readAt.Before(c.expiry())
}

func (c *core) expiry() time.Time {
	d := c.seen.Duration
	if d <= 0 { // not written by tendril
		d = c.opts.Lease
	}
	return c.seenAt.Add(d)
}

func (c *core) isOwn(l queue.Lease) bool { return strings.HasPrefix(l.Version, c.session+"-") }

func (c *core) observed(now time.Time, l queue.Lease) {
	c.failures, c.notBefore = 0, time.Time{}
	if c.seenAt.IsZero() || l.Version != c.seen.Version {
		c.seenAt = now
	}
	c.seen = l
	c.readAt = now
	c.known = true
	c.highest = max(c.highest, l.Term)
	c.nextRead = c.nextReadTime()
}

func (c *core) nextReadTime() time.Time {
	interval := c.opts.Renew
	if c.opts.Watch != nil {
		interval = max(interval, c.opts.Watch())
	}
	next := c.readAt.Add(interval - time.Duration(c.opts.Random()*float64(interval)/4))
	if interval > c.opts.Renew {
		return next
	}
	return earlier(next, c.expiry())
}

func (c *core) swapped(now time.Time, a *attempt, won bool, current queue.Lease) (leads bool) {
	c.endExpiredTerm(now)
	isPending := c.pending == a
	c.pending = nil
	if !won && current.Version != a.next.Version {
		c.lose()
		c.observed(now, current)
		return false
	}

	c.observed(now, a.next)
	trusted := a.start.Add(c.opts.Lease - c.opts.Margin)
	if !isPending || !now.Before(trusted) {
		c.term = 0
		return false
	}

	c.term = a.next.Term
	c.trusted = trusted
	c.renewAt = a.start.Add(c.opts.Renew)
	return true
}

// lose ends the term. The lease must be read before the next attempt.
func (c *core) lose() {
	c.term = 0
	c.pending = nil
	c.known = false
}

func (c *core) backOff(now time.Time) time.Duration {
	first, longest := c.opts.Renew/25, c.opts.Renew
	if c.term > 0 {
		longest = c.opts.Renew / 5
	}
	delay := min(first<<min(c.failures, 10), longest)
	delay = delay/2 + time.Duration(c.opts.Random()*float64(delay)/2)
	c.failures++
	c.notBefore = now.Add(delay)
	return delay
}

// releaseAttempt returns nil if this instance does not hold the lease. No attempt may be pending.
func (c *core) releaseAttempt(now time.Time) *attempt {
	if !c.known || !c.isOwn(c.seen) || c.seen.Released {
		return nil
	}
	return c.newAttempt(now, queue.Lease{Owner: c.opts.Owner, Term: c.seen.Term, Released: true, Data: c.opts.Data})
}
