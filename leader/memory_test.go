package leader

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"tendril/leader/leadertest"
	"tendril/queue"
)

// memory is a store in a map. fault, if set, is asked before each call and
// says how long it takes, whether it is applied, and what it reports.
type memory struct {
	mu     sync.Mutex
	leases map[string]queue.Lease
	swaps  int
	reads  int
	fault  func(swap bool) fault
}

// fault is what goes wrong with one call. The zero value is nothing.
type fault struct {
	takes time.Duration // before it is applied
	drop  bool          // it is not applied
	err   error         // what it reports
}

func newMemory() *memory { return &memory{leases: map[string]queue.Lease{}} }

func (m *memory) Read(ctx context.Context, name string) (queue.Lease, error) {
	f, err := m.begin(ctx, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	return m.leases[name], errors.Join(err, f.err)
}

func (m *memory) Swap(ctx context.Context, name string, old, next queue.Lease) (bool, queue.Lease, error) {
	if next.Version == "" {
		return false, queue.Lease{}, errors.New("a lease needs a version")
	}
	f, err := m.begin(ctx, true)
	if err != nil {
		return false, queue.Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.swaps++
	if stored := m.leases[name]; !f.drop && stored.Version == old.Version {
		m.leases[name] = next
	}
	if f.err != nil {
		return false, queue.Lease{}, f.err
	}
	return m.leases[name].Version == next.Version, m.leases[name], nil
}

// begin waits as long as the call takes, or until its context ends.
func (m *memory) begin(ctx context.Context, swap bool) (fault, error) {
	m.mu.Lock()
	var f fault
	if m.fault != nil {
		f = m.fault(swap)
	}
	m.mu.Unlock()
	if f.takes > 0 {
		timer := time.NewTimer(f.takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return f, ctx.Err()
}

func (m *memory) fail(f func(swap bool) fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

func (m *memory) stored(name string) queue.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases[name]
}

func TestMemoryIsALeaseStore(t *testing.T) {
	t.Parallel()
	leadertest.Run(t, func(testing.TB) leadertest.Store { return newMemory() })
}
