package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// The pauses after an attempt to start more replicas that failed.
const (
	firstGrowthPause = 30 * time.Second
	lastGrowthPause  = 10 * time.Minute
)

// Scaler changes the number of replicas, as package autoscale decides it. A change takes as
// long as an app takes to be ready, so that it is made in the background; one at a time.
type Scaler struct {
	size, ready func() int
	scale       func(ctx context.Context, n int) error
	log         *slog.Logger
	run         context.Context // nothing is changed any more when it is done

	mu sync.Mutex
	// wanted is the number that a change under way leads to; 0 when there is none.
	wanted int
	// pause is how long nothing grows after the last failure, until notBefore.
	pause     time.Duration
	notBefore time.Time
	changes   sync.WaitGroup
}

// Size returns how many replicas can work now, and how many are wanted.
func (s *Scaler) Size(context.Context) (current, desired int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if desired = s.wanted; desired == 0 {
		desired = s.size()
	}
	return s.ready(), desired, nil
}

// SetSize begins to bring their number to n, at least 1. While a change is under way the
// next one waits for its end. For a while after replicas that did not come up it refuses to
// start more.
func (s *Scaler) SetSize(_ context.Context, n int) error {
	n = max(n, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run.Err() != nil {
		return ErrStopped
	}
	size := s.size()
	if wait := time.Until(s.notBefore); n > size && wait > 0 {
		return fmt.Errorf("the last new replicas were not ready in time: no more are started for another %s",
			wait.Round(time.Second))
	}

	if s.wanted != 0 {
		s.wanted = n
		return nil
	}
	if n != size {
		s.wanted = n
		s.changes.Go(s.change)
	}
	return nil
}

// change makes changes until the number is the one that is wanted.
func (s *Scaler) change() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := 0; n != s.wanted; {
		n = s.wanted
		s.mu.Unlock()
		err := s.scale(s.run, n)
		s.mu.Lock()
		if err == nil {
			s.pause = 0
			continue
		}
		// Where a deployment came first the next reading decides anew.
		if s.run.Err() == nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrStopped) {
			s.pause = min(max(2*s.pause, firstGrowthPause), lastGrowthPause)
			s.notBefore = time.Now().Add(s.pause)
			s.log.Warn("changing the number of replicas failed", "replicas", n, "err", err,
				"hint", "an app that can run only once on a machine needs --scale-target none; any other listens on PORT")
		}
		break
	}
	s.wanted = 0
}
