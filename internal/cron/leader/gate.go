package leader

import (
	"fmt"
	"sync"
	"time"
)

// gate holds the answer to "am I the leader?". It is open for one term at a
// time, up to the end of the trust window, and a term that was closed is never
// opened again. Closing does not block.
type gate struct {
	// standstill is how far the two clocks may part, and how late a tick may
	// be, before this process counts as having stood still. It is also the time
	// between two ticks.
	standstill time.Duration
	wall       func() time.Time
	// began is called for each new term and lost for each closing, in order and with
	// the gate's lock held: they must not block.
	began func(term int64)
	lost  func(term int64, reason string)

	mu      sync.Mutex
	term    int64     // 0: closed
	closed  int64     // the last term that was closed
	until   time.Time // the end of the trust window
	since   time.Time // when the attempt that opened it began, on the monotonic clock ...
	sinceBy time.Time // ... and by the time of day
	ticked  time.Time // the last tick
	stopped bool
	changed chan struct{}
}

// open opens the gate, or leaves it open longer, by an attempt that won. It
// returns false, with the gate closed for this term, when the term was closed
// before, or when it cannot be trusted even now.
func (g *gate) open(a *attempt, until time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	term := a.next.Term
	if term <= g.closed || g.stopped {
		return false
	}

	g.until, g.since, g.sinceBy = until, a.start, a.wall
	if term == g.term {
		return g.check(time.Now())
	}

	g.shut("a newer term began")
	if g.distrust(time.Now()) != "" {
		g.closed = term
		return false
	}
	g.term = term
	g.broadcast()
	g.began(term)
	return true
}

// holds answers the question; see [Elector.Term].
func (g *gate) holds() (term int64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.term == 0 || !g.check(time.Now()) {
		return 0, false
	}
	return g.term, true
}

// check closes the gate if it must not be open any more.
func (g *gate) check(now time.Time) bool {
	if g.term == 0 {
		return false
	}
	if reason := g.distrust(now); reason != "" {
		g.shut(reason)
		return false
	}
	return true
}

// distrust says why an open gate must close, "" when it need not.
func (g *gate) distrust(now time.Time) string {
	if !now.Before(g.until) {
		return "the lease was not renewed in time"
	}
	elapsed, byWall := now.Sub(g.since), g.wall().Round(0).Sub(g.sinceBy.Round(0))
	if apart := byWall - elapsed; apart.Abs() > g.standstill {
		return fmt.Sprintf("the machine was suspended or its clock was set (%s apart)", apart.Round(time.Millisecond))
	}
	if late := now.Sub(g.ticked); late > 2*g.standstill {
		return fmt.Sprintf("the process was suspended for %s", late.Round(time.Millisecond))
	}
	return ""
}

// tick records that the process is alive, and closes the gate if it was not, or
// if the trust window has ended.
func (g *gate) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.check(now)
	g.ticked = now
}

// close closes the gate for a reason that is known elsewhere; forGood means that it is
// never opened again.
func (g *gate) close(reason string, forGood bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut(reason)
	g.stopped = g.stopped || forGood
}

func (g *gate) shut(reason string) {
	if g.term == 0 {
		return
	}
	term := g.term
	g.term, g.closed = 0, term
	g.broadcast()
	g.lost(term, reason)
}

func (g *gate) broadcast() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gate) changes() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}
