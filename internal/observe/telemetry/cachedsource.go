package telemetry

import (
	"time"

	"golang.org/x/sync/singleflight"
)

type cachedSource[T any] struct {
	read  func() T // nil if there is no source
	calls singleflight.Group
	// Only the running call uses value and at, the time value was read.
	value T
	at    time.Time
}

const (
	cacheFor      = time.Second
	sourceTimeout = 2 * time.Second
)

// get returns the value of the source, calling it unless the cached value is fresh. ok is false if the source does
// not answer in time. A stale value is never returned.
func (s *cachedSource[T]) get() (value T, ok bool) {
	if s.read == nil {
		return value, false
	}
	answer := s.calls.DoChan("", func() (any, error) {
		if s.at.IsZero() || time.Since(s.at) >= cacheFor {
			s.value = s.read()
			s.at = time.Now()
		}
		return s.value, nil
	})
	timeout := time.NewTimer(sourceTimeout)
	defer timeout.Stop()
	select {
	case a := <-answer:
		return a.Val.(T), true
	case <-timeout.C:
		return value, false
	}
}
