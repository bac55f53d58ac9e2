package app

import (
	"context"
	"errors"
	"sync"
)

var (
	// ErrBusy means that another change is in progress, or that a deployment canceled this one.
	ErrBusy = errors.New("another deployment or scaling operation is in progress; wait until it finishes")
	// ErrStopped means that the app is stopping.
	ErrStopped = errors.New("the environment is stopping")
	errAborted = errors.New("the deployment was aborted")
)

func isStopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrStopped) }

func isAborted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errAborted) }

// changeLock allows one change at a time; see [changeLock.begin].
type changeLock struct {
	token    chan struct{}
	stopping context.Context
	endNow   context.CancelFunc

	mu        sync.Mutex
	deploying bool
	giveUp    context.CancelCauseFunc
}

func newChangeLock() *changeLock {
	l := &changeLock{token: make(chan struct{}, 1)}
	l.token <- struct{}{}
	l.stopping, l.endNow = context.WithCancel(context.Background())
	return l
}

type changeKind int

const (
	toStart changeKind = iota
	toScale
	toDeploy
)

// begin starts a change; the caller must call end. A deployment waits for a start, and cancels a change of size or a
// restart. Any other concurrent change fails with [ErrBusy]. The returned context's cause is [ErrStopped] if the app
// stops, and [ErrBusy] if a deployment cancels the change of size or the restart.
func (l *changeLock) begin(ctx context.Context, kind changeKind) (_ context.Context, end func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(l.stopping, func() { cancel(ErrStopped) })
	err = l.acquire(ctx, kind, cancel)
	if err == nil && l.stopping.Err() == nil {
		return ctx, func() { l.release(kind); detach(); cancel(nil) }, nil
	}

	if err == nil {
		l.release(kind)
	}
	if l.stopping.Err() != nil || isStopped(ctx) {
		err = ErrStopped
	}
	detach()
	cancel(nil)
	return nil, nil, err
}

func (l *changeLock) stop() (end func()) {
	l.endNow()
	<-l.token
	return func() { l.release(toDeploy) }
}

func (l *changeLock) acquire(ctx context.Context, kind changeKind, giveUp context.CancelCauseFunc) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deploying {
		return ErrBusy
	}
	if kind == toDeploy {
		return l.acquireToDeploy(ctx)
	}
	select {
	case <-l.token:
	default:
		return ErrBusy
	}
	if kind == toScale {
		l.giveUp = giveUp
	}
	return nil
}

// l.mu must be held.
func (l *changeLock) acquireToDeploy(ctx context.Context) error {
	l.deploying = true
	if l.giveUp != nil {
		l.giveUp(ErrBusy)
	}

	l.mu.Unlock() // release needs the lock
	var err error
	select {
	case <-l.token:
	case <-ctx.Done():
		err = ctx.Err()
	}
	l.mu.Lock()
	l.deploying = err == nil
	return err
}

func (l *changeLock) release(kind changeKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind == toDeploy {
		l.deploying = false
	}
	l.giveUp = nil // before a waiting deployment gets the token
	l.token <- struct{}{}
}
