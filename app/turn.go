package app

import (
	"context"
	"errors"
	"sync"
)

// Errors of changes of the app.
var (
	// ErrBusy: another change is under way, or a deployment took this one's place.
	ErrBusy = errors.New("another deployment or change of size is under way; wait for its end")
	// ErrStopped: the app is being stopped.
	ErrStopped = errors.New("the environment is stopping")
)

// isStopped reports whether ctx ended since the app is being stopped.
func isStopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrStopped) }

// turn lets one change be made at a time. A deployment takes the place of a lesser
// one; two deployments, or two lesser ones, are refused.
type turn struct {
	token chan struct{} // its holder may change things
	// stopping is done when everything ends; stopped is true when it has, under the token.
	stopping context.Context
	endNow   context.CancelFunc
	stopped  bool

	mu        sync.Mutex
	deploying bool
	giveUp    func() // ends the lesser change under way
}

func newTurn() *turn {
	t := &turn{token: make(chan struct{}, 1)}
	t.token <- struct{}{}
	t.stopping, t.endNow = context.WithCancel(context.Background())
	return t
}

// changeKind is what a change is for.
type changeKind int

const (
	toStart changeKind = iota
	toScale
	toDeploy
)

// begin begins a change. A deployment waits for a start, and has a change of size given up;
// otherwise the error is [ErrBusy] while there is another change. The context that it returns
// ends with ctx, with the cause [ErrStopped] when everything ends, and with the cause [ErrBusy]
// when a deployment takes the place of a change of size; end ends the change.
func (t *turn) begin(ctx context.Context, kind changeKind) (_ context.Context, end func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(t.stopping, func() { cancel(ErrStopped) })
	if kind == toDeploy {
		err = t.takeOver(ctx)
	} else {
		err = t.take(func() {
			if kind == toScale {
				cancel(ErrBusy)
			}
		})
	}
	if err == nil && (t.stopped || t.stopping.Err() != nil) {
		t.pass()
		err = ErrStopped
	}
	if err != nil {
		if t.stopping.Err() != nil || isStopped(ctx) {
			err = ErrStopped
		}
		detach()
		cancel(nil)
		return nil, nil, err
	}
	return ctx, func() { t.pass(); detach(); cancel(nil) }, nil
}

// stop gives up the change under way, and takes the turn for the last change of all; end
// ends that.
func (t *turn) stop() (end func()) {
	t.endNow()
	<-t.token
	t.stopped = true
	return t.pass
}

// take takes the turn for a lesser change; giveUp is called when a deployment wants it,
// and must not block.
func (t *turn) take(giveUp func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deploying || len(t.token) == 0 {
		return ErrBusy
	}
	<-t.token
	t.giveUp = giveUp
	return nil
}

// takeOver takes the turn for a deployment, as soon as a lesser change has given up.
func (t *turn) takeOver(ctx context.Context) error {
	t.mu.Lock()
	busy := t.deploying
	t.deploying = true
	if t.giveUp != nil {
		t.giveUp()
	}
	t.mu.Unlock()
	if busy {
		return ErrBusy
	}
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
