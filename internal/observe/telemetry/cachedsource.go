package telemetry

import (
	"time"

	"golang.org/x/sync/singleflight"
)

// cachedSource caches the latest value of a source.
type cachedSource[T any] struct {
	read  func() T // nil if there is no source
	calls singleflight.Group
	// value was read at time at, zero before the first read. Only the running call uses them.
	value T
	at    time.Time
}

const (
	// cacheFor is how long a value is reused, and sourceTimeout how long a reader waits for one.
	cacheFor      = time.Second
	sourceTimeout = 2 * time.Second
)

// get returns the value of the source, calling it unless the cached value is fresh or a call is running. ok is false
// if the source does not answer in time. A stale value is never returned.
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
