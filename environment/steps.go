package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// steps is the stack of what must be undone: each part that was built or
// started puts its own end on top, and stopping takes them down in reverse. A
// start that fails half way runs the same stack.
type steps struct {
	mu   sync.Mutex
	list []step
}

type step struct {
	name string
	stop func(ctx context.Context) error
}

// push puts a step on top.
func (s *steps) push(name string, stop func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, step{name, stop})
}

// background runs a part until the stop reaches it, and waits for its end there.
func (s *steps) background(name string, run func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	s.push(name, func(context.Context) error {
		stop()
		<-ended
		return nil
	})
}

// unwind runs all steps, last in first out, each at most once, and joins their
// errors. A failing step does not keep the ones below it from running. ctx
// bounds the whole: a step is expected to hurry once it is done.
func (s *steps) unwind(ctx context.Context, log *slog.Logger) error {
	var errs []error
	for {
		s.mu.Lock()
		n := len(s.list)
		if n == 0 {
			s.mu.Unlock()
			return errors.Join(errs...)
		}
		top := s.list[n-1]
		s.list = s.list[:n-1]
		s.mu.Unlock()

		begin := time.Now()
		err := top.stop(ctx)
		log.Debug("stopped", "component", top.name, "duration_ms", time.Since(begin).Milliseconds())
		if err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", top.name, err))
		}
	}
}
