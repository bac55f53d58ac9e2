package app

import (
	"sync"
	"time"
)

// gate passes the readiness of the app on to the workers. An app that was ready and is not for
// a moment keeps them open: its messages wait for it meanwhile.
type gate struct {
	// pass opens or closes the workers' gates; isOpen is [balancer.isOpen].
	pass   func(open bool, reason string)
	isOpen func() (open bool, reason string)
	ready  chan struct{} // closed when the app was ready for the first time

	mu    sync.Mutex
	timer *time.Timer // closes the gates when the app stays away
}

// change is called when the app becomes ready, or is no longer.
func (g *gate) change(open bool, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}

	switch {
	case open:
		g.pass(true, "") // first: ready means that the workers may deliver, and health is judged then
		if !g.wasReady() {
			close(g.ready)
		}
	case !g.wasReady():
		g.pass(false, reason)
	default:
		var timer *time.Timer
		timer = time.AfterFunc(notReadyWait, func() {
			g.mu.Lock() // so that no opening comes between the question and the closing
			defer g.mu.Unlock()
			if open, reason := g.isOpen(); !open && g.timer == timer {
				g.pass(false, reason)
			}
		})
		g.timer = timer
	}
}

// wasReady reports whether the app was ready at least once.
func (g *gate) wasReady() bool {
	select {
	case <-g.ready:
		return true
	default:
		return false
	}
}
