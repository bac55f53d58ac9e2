package autoscale

import (
	"context"
	"sync"
)

// Advice is a [Target] that sets nothing: it remembers the size, for a scaler
// outside to ask for. It takes its advice for done, since it cannot know how
// many there are. The zero value has the size 1.
type Advice struct {
	mu   sync.Mutex
	size int
}

// Size returns the size advised last, twice. The error is always nil.
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
