package telemetry

import (
	"time"

	"golang.org/x/sync/singleflight"
)

// cachedSource is a source with its latest value.
type cachedSource[T any] struct {
	read  func() T // nil: there is no source
	calls singleflight.Group
	// value was read at that time, zero before the first. Only the call that runs uses them.
	value T
	at    time.Time
}

const (
	// cacheFor is how long a value is used; sourceTimeout is how long a reader waits
	// for one.
	cacheFor      = time.Second
	sourceTimeout = 2 * time.Second
)

// get returns the value of the source, which it calls unless the cached value is fresh
// or a call is still running. ok is false when there is no answer in time. An old value
// is never returned for a new one.
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
