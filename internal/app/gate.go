package app

import (
	"sync"
	"time"
)

// gate passes on whether deliveries are possible. Once the app has been ready, the gate closes only after the app was
// unready for [notReadyWait].
type gate struct {
	pass   func(open bool, reason string)
	isOpen func() (open bool, reason string)
	ready  chan struct{}

	mu    sync.Mutex
	timer *time.Timer
}

func (g *gate) change(open bool, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}

	switch {
	case open:
		g.pass(true, "") // first, because closing ready triggers a health evaluation
		if !g.wasReady() {
			close(g.ready)
		}
	case !g.wasReady():
		g.pass(false, reason)
	default:
		g.closeLater()
	}
}

func (g *gate) closeLater() {
	var timer *time.Timer
	timer = time.AfterFunc(notReadyWait, func() {
		g.mu.Lock() // so that the gate does not open between the check and the closing
		defer g.mu.Unlock()
		if open, reason := g.isOpen(); !open && g.timer == timer {
			g.pass(false, reason)
		}
	})
	g.timer = timer
}

func (g *gate) wasReady() bool { return isClosed(g.ready) }
