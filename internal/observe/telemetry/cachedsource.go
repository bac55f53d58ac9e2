package telemetry

import (
	"time"

	"golang.org/x/sync/singleflight"
)

type cachedSource[T any] struct {
	read  func() T
	calls singleflight.Group
	value T // used only by the running call, like at
	at    time.Time
}

const (
	cacheFor      = time.Second
	sourceTimeout = 2 * time.Second
)

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
