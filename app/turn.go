package app

import (
	"context"
	"sync"
)

// turn lets one change be made at a time. A deployment takes the place of a lesser
// one; two deployments, or two lesser ones, are refused.
type turn struct {
	token chan struct{} // who has it may change things

	mu        sync.Mutex
	deploying bool
	giveUp    func() // ends the lesser change under way
}

func newTurn() *turn {
	t := &turn{token: make(chan struct{}, 1)}
	t.token <- struct{}{}
	return t
}

// change takes the turn for a lesser change; giveUp is called when a deployment
// wants it, and must not block. The error is [ErrBusy].
func (t *turn) change(giveUp func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deploying {
		return ErrBusy
	}
	select {
	case <-t.token:
		t.giveUp = giveUp
		return nil
	default:
		return ErrBusy
	}
}

// deploy takes the turn for a deployment, as soon as a lesser change has given up.
// The error is [ErrBusy] while there is another deployment, or ctx's.
func (t *turn) deploy(ctx context.Context) error {
	t.mu.Lock()
	if t.deploying {
		t.mu.Unlock()
		return ErrBusy
	}
	t.deploying = true
	if t.giveUp != nil {
		t.giveUp()
	}
	t.mu.Unlock()
	select {
	case <-t.token:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		t.deploying = false
		return ctx.Err()
	}
}

// take takes the turn for the last change of all.
func (t *turn) take() { <-t.token }

// pass gives the turn back.
func (t *turn) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.giveUp == nil {
		t.deploying = false
	}
	t.giveUp = nil // a deployment may be waiting for just this
	t.token <- struct{}{}
}
