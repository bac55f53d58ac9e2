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

	mu           sync.Mutex
	term         int64
	lastClosed   int64
	trustedUntil time.Time
	start        time.Time
	startWall    time.Time
	lastTick     time.Time
	stopped      bool
	changed      chan struct{}
}

func (g *gate) open(a *attempt, until time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	term := a.next.Term
	if term <= g.lastClosed || g.stopped {
		return false
	}

	g.trustedUntil = until
	g.start = a.start
	g.startWall = a.wall
	if term == g.term {
		return g.recheck(time.Now())
	}

	g.endTerm("a newer term has started")
	if g.reasonToClose(time.Now()) != "" {
		g.lastClosed = term // the gate never opens for this term
		return false
	}

	g.term = term
	g.broadcast()
	g.began(term)
	return true
}

func (g *gate) currentTerm() (term int64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.recheck(time.Now())
	return g.term, g.term != 0
}

func (g *gate) recheck(now time.Time) bool {
	if g.term == 0 {
		return false
	}
	if reason := g.reasonToClose(now); reason != "" {
		g.endTerm(reason)
		return false
	}
	return true
}

func (g *gate) reasonToClose(now time.Time) string {
	if !now.Before(g.trustedUntil) {
		return "the lease was not renewed in time"
	}

	elapsed := now.Sub(g.start)
	elapsedWall := g.wall().Round(0).Sub(g.startWall.Round(0))
	if apart := elapsedWall - elapsed; apart.Abs() > g.standstill {
		return fmt.Sprintf("the machine was suspended or its clock was set (%s apart)", apart.Round(time.Millisecond))
	}
	if late := now.Sub(g.lastTick); late > 2*g.standstill {
		return fmt.Sprintf("the process was suspended for %s", late.Round(time.Millisecond))
	}
	return ""
}

func (g *gate) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.recheck(now)
	g.lastTick = now
}

func (g *gate) close(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endTerm(reason)
}

func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endTerm("stopped")
	g.stopped = true
}

func (g *gate) endTerm(reason string) {
	if g.term == 0 {
		return
	}
	g.lastClosed = g.term
	g.term = 0
	g.broadcast()
	g.lost(g.lastClosed, reason)
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
