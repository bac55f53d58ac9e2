package autoscale

import (
	"context"
	"sync"
)

// Advice is a [Target] that only remembers the size, for an external scaler to read. It
// reports the advised size as the current one, because it cannot know the real one. The
// zero value has the size 1.
type Advice struct {
	mu   sync.Mutex
	size int
}

// Size returns the last advised size as both sizes. The error is always nil.
func (a *Advice) Size(context.Context) (current, desired int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := max(a.size, 1)
	return n, n, nil
}

// SetSize remembers the size. The error is always nil.
func (a *Advice) SetSize(_ context.Context, n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.size = n
	return nil
}
