package leader

import (
	"fmt"
	"sync"
	"time"
)

// gate is open for one term at a time, until the end of the trust window. It never reopens for a closed term.
type gate struct {
	// standstill is the largest delay of a tick, and difference between the clocks, that does not count as a suspension.
	standstill time.Duration
	wall       func() time.Time
	// The gate's lock is held while began and lost are called, so they must not block.
	began func(term int64)
	lost  func(term int64, reason string)

	mu        sync.Mutex
	term      int64
	closed    int64
	until     time.Time
	since     time.Time // monotonic
	sinceWall time.Time // wall clock
	ticked    time.Time
	stopped   bool
	changed   chan struct{}
}

// open opens the gate for the attempt's term, or extends the trust window. It returns false if the term was closed
// before or must be closed now.
func (g *gate) open(a *attempt, until time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	term := a.next.Term
	if term <= g.closed || g.stopped {
		return false
	}

	g.until = until
	g.since = a.start
	g.sinceWall = a.wall
	if term == g.term {
		return g.stillOpen(time.Now())
	}

	g.shut("a newer term has started")
	if g.reasonToClose(time.Now()) != "" {
		g.closed = term // the gate never opens for this term
		return false
	}

	g.term = term
	g.broadcast()
	g.began(term)
	return true
}

func (g *gate) holds() (term int64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.term == 0 || !g.stillOpen(time.Now()) {
		return 0, false
	}
	return g.term, true
}

func (g *gate) stillOpen(now time.Time) bool {
	if g.term == 0 {
		return false
	}
	if reason := g.reasonToClose(now); reason != "" {
		g.shut(reason)
		return false
	}
	return true
}

func (g *gate) reasonToClose(now time.Time) string {
	if !now.Before(g.until) {
		return "the lease was not renewed in time"
	}
	elapsed, byWall := now.Sub(g.since), g.wall().Round(0).Sub(g.sinceWall.Round(0))
	if apart := byWall - elapsed; apart.Abs() > g.standstill {
		return fmt.Sprintf("the machine was suspended or its clock was set (%s apart)", apart.Round(time.Millisecond))
	}
	if late := now.Sub(g.ticked); late > 2*g.standstill {
		return fmt.Sprintf("the process was suspended for %s", late.Round(time.Millisecond))
	}
	return ""
}

func (g *gate) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.stillOpen(now)
	g.ticked = now
}

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
