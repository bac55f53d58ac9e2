package telemetry

import (
	"context"
	"sync"
	"time"
)

// cachedSource is a source with its latest value.
type cachedSource[T any] struct {
	read func(context.Context) T // nil: there is no source

	mu    sync.Mutex
	value T
	at    time.Time     // when value was read; zero before the first
	busy  chan struct{} // closed when the call returns; nil when no call is running
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
func (r *cachedSource[T]) get() (value T, ok bool) {
	if r.read == nil {
		return value, false
	}
	if busy := r.refresh(); busy != nil {
		timeout := time.NewTimer(sourceTimeout)
		defer timeout.Stop()
		select {
		case <-busy:
		case <-timeout.C:
			return value, false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, true
}

// refresh starts a call where that is needed, and returns what is closed when the call
// that runs returns; nil when the cached value is fresh.
func (r *cachedSource[T]) refresh() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy != nil {
		return r.busy
	}
	if !r.at.IsZero() && time.Since(r.at) < cacheFor {
		return nil
	}
	busy := make(chan struct{})
	r.busy = busy
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), sourceTimeout)
		defer cancel()
		value := r.read(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.value, r.at, r.busy = value, time.Now(), nil
		close(busy)
	}()
	return busy
}
