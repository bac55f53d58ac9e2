package telemetry

import (
	"context"
	"sync"
	"time"
)

// reading is the latest answer of one source.
type cachedSource[T any] struct {
	read func(context.Context) T

	mu    sync.Mutex
	value T
	at    time.Time     // of the answer; zero before the first
	busy  chan struct{} // closed when the source has answered; nil while it is not asked
}

const (
	// readEvery is how long an answer is good for, readPatience how long one
	// reader waits for one.
	cacheFor      = time.Second
	sourceTimeout = 2 * time.Second
)

// begin asks the source unless its last answer is fresh or it is still busy with
// an earlier question.
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

// answer waits for what begin asked; ok is false when ctx ended first, or there
// is no such source. An old answer is never given for a new one.
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

// newReading returns nil for a source that is not there.
func newCachedSource[T any](there bool, read func(context.Context) T) *cachedSource[T] {
	if !there {
		return nil
	}
	return &cachedSource[T]{read: read}
}
