package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"tendril/api"
)

// Reasons for the end of an environment.
var (
	// ErrAppFailed means that the app or function could not start, failed too often, or was not ready in time.
	ErrAppFailed = errors.New("the app is not running")
	// ErrLate means that the drain exceeded the shutdown timeout. Messages in flight return to the queue.
	ErrLate = errors.New("the stop took longer than the shutdown timeout")
	// ErrCutShort means that an immediate shutdown was requested. Messages in flight return to the queue.
	ErrCutShort = errors.New("the stop was interrupted on request")
	// ErrQueue means that the queue does not exist, is inaccessible or does not respond.
	ErrQueue = errors.New("cannot use the queue")
	// ErrSettings means that a setting or an environment variable is invalid.
	ErrSettings = errors.New("invalid settings")
	// ErrTarget means that the function is unusable.
	ErrTarget = errors.New("cannot use the function")
	// ErrConflict means that a port, the data directory or a queue's name is in use.
	ErrConflict = errors.New("in use")

	errStarting = api.NewError(http.StatusConflict, "the environment is still starting",
		"'tendril status' shows its progress")
	errStartAbandoned = errors.New("startup was abandoned")
)

type conflict struct{ error }

func (c conflict) Unwrap() []error { return []error{ErrConflict, c.error} }

func invalidSettings(err error) error { return fmt.Errorf("%w: %w", ErrSettings, err) }

func portConflict(err error) error { return conflict{fmt.Errorf("%w with --port", err)} }

type step struct {
	name string
	stop func(ctx context.Context) error
}

type lifecycle struct {
	steps []step
	// announced is closed once other commands can find the environment, started once startup completes, ready once the
	// app is ready, and receiving once every queue has started to receive or only a pause prevents it.
	announced, started, ready, receiving chan struct{}
	urgent                               context.Context // done once an immediate stop is requested
	fatal                                chan error
	// drained is closed when no message is in flight; drainErr then contains the outcome.
	draining, drained chan struct{}
	drainOnce         sync.Once
	drainErr          error
}

func newLifecycle() *lifecycle {
	return &lifecycle{
		announced: make(chan struct{}), started: make(chan struct{}), ready: make(chan struct{}),
		receiving: make(chan struct{}), urgent: context.Background(), fatal: make(chan error, 1),
		draining: make(chan struct{}), drained: make(chan struct{}),
	}
}

func (l *lifecycle) running() bool { return isClosed(l.started) }

func (l *lifecycle) stopping() bool { return isClosed(l.draining) }

func (l *lifecycle) onStop(name string, stop func(ctx context.Context) error) {
	l.steps = append(l.steps, step{name, stop})
}

func (l *lifecycle) closeOnStop(name string, close func() error) {
	l.onStop(name, func(context.Context) error { return close() })
}

func (l *lifecycle) runUntilStop(name string, run func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var part sync.WaitGroup
	part.Go(func() { run(ctx) })
	l.onStop(name, func(context.Context) error { stop(); part.Wait(); return nil })
}

func (l *lifecycle) startStep(name string, run func(context.Context)) func(context.Context) error {
	return func(context.Context) error { l.runUntilStop(name, run); return nil }
}

func (l *lifecycle) stopAll(ctx context.Context, log *slog.Logger) error {
	var errs []error
	for len(l.steps) > 0 {
		last := l.steps[len(l.steps)-1]
		l.steps = l.steps[:len(l.steps)-1]

		began := time.Now()
		err := last.stop(ctx)
		log.Debug("stopped", "component", last.name, "duration_ms", time.Since(began).Milliseconds())
		if err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", last.name, err))
		}
	}
	return errors.Join(errs...)
}

func isClosed(state <-chan struct{}) bool {
	select {
	case <-state:
		return true
	default:
		return false
	}
}

func (l *lifecycle) state() string {
	switch {
	case !l.running():
		return api.StateStarting
	case l.stopping():
		return api.StateDraining
	}
	return api.StateRunning
}

func (l *lifecycle) beginDrain() { l.drainOnce.Do(func() { close(l.draining) }) }

func (l *lifecycle) finishDrain(err error) {
	if !isClosed(l.drained) {
		l.drainErr = err
		close(l.drained)
	}
}

// Drain makes Run stop, and waits until all deliveries are settled or ctx is done.
func (l *lifecycle) Drain(ctx context.Context) error {
	l.beginDrain()
	select {
	case <-l.drained:
		return l.drainErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lifecycle) fail(err error) {
	select {
	case l.fatal <- err:
	default:
	}
}

// startUnlessStopped cancels start if a stop is requested: a build can take an hour, and an endpoint may never respond.
func (l *lifecycle) startUnlessStopped(stop, now context.Context, start func(context.Context) error) error {
	ctx, cancel := context.WithCancel(now)
	defer cancel()
	unregister := context.AfterFunc(stop, cancel)
	defer unregister()
	go func() {
		select {
		case <-l.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := start(ctx)
	if err != nil && ctx.Err() != nil {
		return errStartAbandoned
	}
	return err
}
