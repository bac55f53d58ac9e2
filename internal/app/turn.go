package app

import (
	"context"
	"errors"
	"sync"
)

// Errors of changes to the app.
var (
	// ErrBusy means that another change is in progress, or that a deployment canceled this one.
	ErrBusy = errors.New("another deployment or change of size is in progress; wait until it ends")
	// ErrStopped means that the app is stopping.
	ErrStopped = errors.New("the environment is stopping")
	errAborted = errors.New("the deployment was aborted")
)

func isStopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrStopped) }

func isAborted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errAborted) }

// turn allows one change at a time. A deployment cancels a lesser change; other concurrent changes are rejected.
type turn struct {
	token chan struct{} // its holder may make a change
	// stopping is done when the app stops.
	stopping context.Context
	endNow   context.CancelFunc

	mu        sync.Mutex
	deploying bool
	giveUp    context.CancelCauseFunc // cancels the change of size in progress
}

func newTurn() *turn {
	t := &turn{token: make(chan struct{}, 1)}
	t.token <- struct{}{}
	t.stopping, t.endNow = context.WithCancel(context.Background())
	return t
}

type changeKind int

const (
	toStart changeKind = iota
	toScale
	toDeploy
)

// begin starts a change, which end ends. A deployment waits for a start and cancels a change of size; otherwise begin
// returns [ErrBusy] during another change. The cause of the returned context is [ErrStopped] when the app stops, and
// [ErrBusy] when a deployment cancels the change.
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

// stop cancels the change in progress and takes the turn for shutdown.
func (t *turn) stop() (end func()) {
	t.endNow()
	<-t.token
	return func() { t.pass(toDeploy) }
}

// take takes the turn. A deployment waits until a lesser change has given up.
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

// pass returns the turn.
func (t *turn) pass(kind changeKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == toDeploy {
		t.deploying = false
	}
	t.giveUp = nil // before a waiting deployment gets the token
	t.token <- struct{}{}
}
