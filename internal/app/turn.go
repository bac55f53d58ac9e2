package app

import (
	"context"
	"errors"
	"sync"
)

// Errors of changes of the app.
var (
	// ErrBusy: another change is under way, or a deployment took this one's place.
	ErrBusy = errors.New("another deployment or change of size is in progress; wait until it ends")
	// ErrStopped: the app is being stopped.
	ErrStopped = errors.New("the environment is stopping")
	// errAborted: somebody aborted the deployment.
	errAborted = errors.New("the deployment was aborted")
)

// isStopped reports whether ctx ended since the app is being stopped.
func isStopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrStopped) }

// isAborted reports whether ctx ended since somebody aborted the deployment.
func isAborted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errAborted) }

// turn lets one change be made at a time. A deployment takes the place of a lesser
// one; two deployments, or two lesser ones, are refused.
type turn struct {
	token chan struct{} // its holder may change things
	// stopping is done when everything ends.
	stopping context.Context
	endNow   context.CancelFunc

	mu        sync.Mutex
	deploying bool
	giveUp    context.CancelCauseFunc // ends the change of size under way
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
	err = t.take(ctx, kind, cancel)
	if err == nil && t.stopping.Err() != nil {
		t.pass(kind)
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
	return ctx, func() { t.pass(kind); detach(); cancel(nil) }, nil
}

// stop gives up the change under way, and takes the turn for the last change of all; end
// ends that.
func (t *turn) stop() (end func()) {
	t.endNow()
	<-t.token
	return func() { t.pass(toDeploy) }
}

// take takes the turn, for a deployment as soon as a lesser change has given up.
func (t *turn) take(ctx context.Context, kind changeKind, giveUp context.CancelCauseFunc) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deploying || kind != toDeploy && len(t.token) == 0 {
		return ErrBusy
	}
	if kind == toScale {
		t.giveUp = giveUp
	}
	if kind != toDeploy {
		<-t.token
		return nil
	}

	t.deploying = true
	if t.giveUp != nil {
		t.giveUp(ErrBusy)
	}

	t.mu.Unlock() // pass needs it
	var err error
	select {
	case <-t.token:
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	t.deploying = err == nil
	return err
}

// pass gives the turn back.
func (t *turn) pass(kind changeKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == toDeploy {
		t.deploying = false
	}
	t.giveUp = nil // a deployment may be waiting for just this
	t.token <- struct{}{}
}
