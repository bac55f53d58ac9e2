package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Errors that tell the command how an environment ended.
var (
	// ErrAppFailed: the app failed too often, or was not ready in time.
	ErrAppFailed = errors.New("the app is not running")
	// ErrLate: the drain took longer than the shutdown timeout; what was in flight goes back to the queue.
	ErrLate = errors.New("the stop took longer than the shutdown timeout")
	// ErrCutShort: as ErrLate, but since somebody asked for a stop at once.
	ErrCutShort = errors.New("the stop was cut short on request")
	// ErrQueue: the queue cannot be used: there is none, no access, no answer.
	ErrQueue = errors.New("the queue cannot be used")
	// ErrSettings: a setting, or a variable of another system, is wrong.
	ErrSettings = errors.New("the settings are wrong")
	// ErrTarget: what messages are handed to cannot be used.
	ErrTarget = errors.New("the function cannot be used")
	// ErrConflict: a port, or the data directory, is in use. The error's text
	// says which; this one is only for errors.Is.
	ErrConflict = errors.New("in use")

	errStarting = errors.New("the environment is still starting")
	// errGivenUp is the error of a start that a stop ended.
	errGivenUp = errors.New("the start was abandoned")
)

// conflict is an [ErrConflict] with the text of another error.
type conflict struct{ error }

// Unwrap returns both errors.
func (c conflict) Unwrap() []error { return []error{ErrConflict, c.error} }

func portConflict(err error) error { return conflict{fmt.Errorf("%w with --port", err)} }

// steps is the stack of what must be undone: each part that was built or started puts its own end on top, and
// stopping takes them down in reverse. A start that fails half way runs the same stack.
type steps []step

type step struct {
	name string
	stop func(ctx context.Context) error
}

func (s *steps) push(name string, stop func(ctx context.Context) error) {
	*s = append(*s, step{name, stop})
}

// background runs a part until the stop reaches it, and waits for its end there.
func (s *steps) background(name string, run func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var part sync.WaitGroup
	part.Go(func() { run(ctx) })
	s.push(name, func(context.Context) error { stop(); part.Wait(); return nil })
}

// unwind runs all steps, last in first out, each at most once, and joins their errors. A failing step does not
// keep the ones below it from running. ctx bounds the whole: a step is expected to hurry once it is done.
func (s *steps) unwind(ctx context.Context, log *slog.Logger) error {
	var errs []error
	for len(*s) > 0 {
		last := len(*s) - 1
		top := (*s)[last]
		*s = (*s)[:last]
		begin := time.Now()
		err := top.stop(ctx)
		log.Debug("stopped", "component", top.name, "duration_ms", time.Since(begin).Milliseconds())
		if err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", top.name, err))
		}
	}
	return errors.Join(errs...)
}

// lifecycle holds the states that an environment goes through, in this order: announced, started,
// draining, drained.
type lifecycle struct {
	steps steps
	// announced is closed when the queues and their workers exist, started when the start is over, and
	// ready when the app was ready for the first time.
	announced, started, ready chan struct{}
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
		announced: make(chan struct{}), started: make(chan struct{}), ready: make(chan struct{}),
		urgent: context.Background(), fatal: make(chan error, 1), draining: make(chan struct{}), drained: make(chan struct{}),
	}
}

// running reports whether the start is over: before, nothing can be read.
func (l *lifecycle) running() bool { return isClosed(l.started) }

func (l *lifecycle) stopping() bool { return isClosed(l.draining) }

func isClosed(state <-chan struct{}) bool {
	select {
	case <-state:
		return true
	default:
		return false
	}
}

func (l *lifecycle) beginDrain() { l.drainOnce.Do(func() { close(l.draining) }) }

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

// unlessStopped calls start, which ends with errGivenUp when a stop is asked for before
// it is over: a build can take an hour, and an endpoint may never answer.
func (l *lifecycle) unlessStopped(stop, now context.Context, start func(context.Context) error) error {
	ctx, cancel := context.WithCancel(now)
	defer cancel()
	defer context.AfterFunc(stop, cancel)()
	go func() {
		select {
		case <-l.draining: // asked for over the console
			cancel()
		case <-ctx.Done():
		}
	}()
	err := start(ctx)
	if err != nil && ctx.Err() != nil {
		return errGivenUp
	}
	return err
}
