package environment

import (
	"context"
	"errors"
	"sync"
)

// lifecycle holds the states that an environment goes through, in this order:
// announced, started, draining, drained.
type lifecycle struct {
	// announced is closed when the queues and their workers exist, started when the
	// start is over.
	announced, started chan struct{}
	// urgent is done when a stop is to be at once.
	urgent context.Context
	// fatal receives the first reason to end that is not a stop: an app that failed too
	// often, a listener that broke.
	fatal chan error
	// draining is closed when a stop begins, drained when no message is in work any
	// more, with the outcome in drainErr.
	draining, drained chan struct{}
	drainOnce         sync.Once
	drainErr          error
}

func newLifecycle() *lifecycle {
	return &lifecycle{
		announced: make(chan struct{}), started: make(chan struct{}), urgent: context.Background(),
		fatal: make(chan error, 1), draining: make(chan struct{}), drained: make(chan struct{}),
	}
}

// running reports whether the start is over: before, nothing can be read.
func (l *lifecycle) running() bool { return isClosed(l.started) }

// stopping reports whether a stop has begun.
func (l *lifecycle) stopping() bool { return isClosed(l.draining) }

func isClosed(state <-chan struct{}) bool {
	select {
	case <-state:
		return true
	default:
		return false
	}
}

// beginDrain makes the environment end, once.
func (l *lifecycle) beginDrain() {
	l.drainOnce.Do(func() { close(l.draining) })
}

// finishDrain notifies those who wait that no message is in work any more.
func (l *lifecycle) finishDrain(err error) {
	if !isClosed(l.drained) {
		l.drainErr = err
		close(l.drained)
	}
}

// Drain makes Run end and waits until every delivery is settled, or ctx is done.
func (l *lifecycle) Drain(ctx context.Context) error {
	l.beginDrain()
	select {
	case <-l.drained:
		return l.drainErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fail ends the environment for a reason; the first one counts.
func (l *lifecycle) fail(err error) {
	select {
	case l.fatal <- err:
	default:
	}
}

// errGivenUp is the error of a start that a stop ended.
var errGivenUp = errors.New("the start was given up")

// unlessStopped calls start, which ends with errGivenUp when a stop is asked for before
// it is over: a build can take an hour, and an endpoint may never answer.
func (l *lifecycle) unlessStopped(stop, now context.Context, start func(context.Context) error) error {
	ctx, cancel := context.WithCancel(now)
	defer cancel()
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-over:
			return
		case <-stop.Done():
		case <-l.draining: // asked for over the console
		}
		cancel()
	})
	err := start(ctx)
	close(over)
	watch.Wait()
	if err != nil && ctx.Err() != nil {
		return errGivenUp
	}
	return err
}
