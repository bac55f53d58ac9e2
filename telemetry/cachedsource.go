package telemetry

import (
	"context"
	"sync"
	"time"
)

// cachedSource is a source with its latest value.
type cachedSource[T any] struct {
	read func(context.Context) T

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

// refresh starts a call of the source, unless the cached value is fresh or a call is
// still running.
func (r *cachedSource[T]) refresh() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy != nil || !r.at.IsZero() && time.Since(r.at) < cacheFor {
		return
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
}

// get waits for the call that refresh started. ok is false when ctx ends first or
// there is no such source. An old value is never returned for a new one.
func (r *cachedSource[T]) get(ctx context.Context) (value T, ok bool) {
	if r == nil {
		return value, false
	}
	r.mu.Lock()
	busy := r.busy
	r.mu.Unlock()
	if busy != nil {
		select {
		case <-busy:
		case <-ctx.Done():
			return value, false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, true
}

// newCachedSource returns nil for a source that is not set.
func newCachedSource[T any](set bool, read func(context.Context) T) *cachedSource[T] {
	if !set {
		return nil
	}
	return &cachedSource[T]{read: read}
}
