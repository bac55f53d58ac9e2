package leader

import (
	"context"
	"errors"
	"sync"
	"time"

	"tendril/queue"
)

// memoryStore is a lease store in memory, for tests of electors. It counts its calls, and can fail them. It uses the time
// package alone, so that delays pass in virtual time inside a testing/synctest bubble. All methods are safe for
// concurrent use.
type memoryStore struct {
	mu     sync.Mutex
	leases map[string]queue.Lease
	counts callCounts
	fault  func(swap bool) storeFault
}

// callCounts are the calls of a [memoryStore]. Refused is the number of Swaps that found another version than they
// expected.
type callCounts struct{ Reads, Swaps, Refused int }

// storeFault is what goes wrong with one call of a [memoryStore]. The zero value is not a fault.
type storeFault struct {
	Takes time.Duration // until it is applied
	Drop  bool          // it is not applied
	Err   error         // what it returns
}

// newMemory returns an empty store.
func newMemory() *memoryStore { return &memoryStore{leases: map[string]queue.Lease{}} }

// SetFault sets what is asked before each call, one at a time; nil means no faults.
func (m *memoryStore) SetFault(fault func(swap bool) storeFault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

// Stored returns the lease stored under name, without a call.
func (m *memoryStore) Stored(name string) queue.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases[name]
}

// Remove removes the lease stored under name, without a call.
func (m *memoryStore) Remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, name)
}

// Counts returns the calls so far. Those whose context ended while they were delayed do not count.
func (m *memoryStore) Counts() callCounts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts
}

// Read returns a lease, as a [Store] does.
func (m *memoryStore) Read(ctx context.Context, name string) (queue.Lease, error) {
	f, err := m.begin(ctx, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.Reads++
	return m.leases[name], errors.Join(err, f.Err)
}

// Swap replaces a lease, as a [Store] does.
func (m *memoryStore) Swap(ctx context.Context, name string, old, next queue.Lease) (bool, queue.Lease, error) {
	if next.Version == "" {
		return false, queue.Lease{}, errors.New("a lease needs a version")
	}
	f, err := m.begin(ctx, true)
	if err != nil {
		return false, queue.Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.Swaps++
	if stored := m.leases[name]; !f.Drop && stored.Version == old.Version {
		m.leases[name] = next
	}
	if f.Err != nil {
		return false, queue.Lease{}, f.Err
	}
	won := m.leases[name].Version == next.Version
	if !won {
		m.counts.Refused++
	}
	return won, m.leases[name], nil
}

// begin waits as long as the call takes, or until its context ends.
func (m *memoryStore) begin(ctx context.Context, swap bool) (storeFault, error) {
	m.mu.Lock()
	var f storeFault
	if m.fault != nil {
		f = m.fault(swap)
	}
	m.mu.Unlock()
	if f.Takes > 0 {
		timer := time.NewTimer(f.Takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return f, ctx.Err()
}
