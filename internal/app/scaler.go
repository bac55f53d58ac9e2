package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	firstGrowthPause = 30 * time.Second
	lastGrowthPause  = 10 * time.Minute
)

// Scaler changes the number of replicas for package autoscale, in the background because new replicas take time.
type Scaler struct {
	size, ready func() int
	scale       func(ctx context.Context, n int) error
	log         *slog.Logger
	run         context.Context

	mu sync.Mutex
	// wanted is 0 if no change is in progress.
	wanted int
	// No scale-out starts before notBefore, which is pause after the last failure.
	pause     time.Duration
	notBefore time.Time
	changes   sync.WaitGroup
}

// Size returns the numbers of ready and desired replicas.
func (s *Scaler) Size(context.Context) (current, desired int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	desired = s.wanted
	if desired == 0 {
		desired = s.size()
	}
	return s.ready(), desired, nil
}

// SetSize starts changing the number of replicas to n, at least 1. After failures, it rejects scale-outs for 30 seconds
// to 10 minutes.
func (s *Scaler) SetSize(_ context.Context, n int) error {
	n = max(n, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run.Err() != nil {
		return ErrStopped
	}
	if wait := s.blockedFor(n); wait > 0 {
		return fmt.Errorf("the last new replicas were not ready in time: scale-out is blocked for another %s",
			wait.Round(time.Second))
	}

	isChanging := s.wanted != 0
	if !isChanging && n == s.size() {
		return nil
	}
	s.wanted = n
	if !isChanging {
		s.changes.Go(s.scaleToWanted)
	}
	return nil
}

// blockedFor returns 0 or less if a change to n replicas may start. s.mu must be held.
func (s *Scaler) blockedFor(n int) time.Duration {
	if n <= s.size() {
		return 0
	}
	return time.Until(s.notBefore)
}

// scaleToWanted also applies a size that was requested while a change failed, unless scale-outs to it are blocked.
func (s *Scaler) scaleToWanted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tried := 0; tried != s.wanted && s.blockedFor(s.wanted) <= 0; {
		n := s.wanted
		changes := n != s.size()
		s.mu.Unlock()
		err := s.scale(s.run, n)
		s.mu.Lock()
		if err != nil {
			s.blockScaleOut(n, err)
		} else if changes {
			s.pause = 0
		}
		tried = n
	}
	s.wanted = 0
}

// blockScaleOut ignores failures caused by another change or the stop. s.mu must be held.
func (s *Scaler) blockScaleOut(n int, cause error) {
	if s.run.Err() != nil || errors.Is(cause, ErrBusy) || errors.Is(cause, ErrStopped) {
		return
	}
	s.pause = min(max(2*s.pause, firstGrowthPause), lastGrowthPause)
	s.notBefore = time.Now().Add(s.pause)
	s.log.Warn("number of replicas not changed", "replicas", n, "err", cause,
		"hint", "an app that can run only once per machine needs --scale-target none; any other must listen on PORT")
}
