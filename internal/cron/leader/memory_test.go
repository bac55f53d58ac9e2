package leader

import (
	"context"
	"errors"
	"sync"
	"time"

	"tendril/queue"
)

type memoryStore struct {
	mu     sync.Mutex
	leases map[string]queue.Lease
	counts callCounts
	fault  func(swap bool) storeFault
}

type callCounts struct{ Reads, Swaps, Refused int }

type storeFault struct {
	Takes time.Duration
	Drop  bool
	Err   error
}

func newMemory() *memoryStore { return &memoryStore{leases: map[string]queue.Lease{}} }

func (m *memoryStore) SetFault(fault func(swap bool) storeFault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

func (m *memoryStore) Stored(name string) queue.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases[name]
}

func (m *memoryStore) Remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, name)
}

func (m *memoryStore) Counts() callCounts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts
}

func (m *memoryStore) Read(ctx context.Context, name string) (queue.Lease, error) {
	f, err := m.begin(ctx, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.Reads++
	return m.leases[name], errors.Join(err, f.Err)
}

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
