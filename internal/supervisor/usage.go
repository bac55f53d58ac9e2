package supervisor

import (
	"slices"
	"sync"
	"time"
)

// Usage is the resource usage of a process and its descendants.
type Usage struct {
	// Memory is the resident memory in bytes. Shared memory counts for each process.
	Memory int64
	// CPU is the CPU time since the previous reading, as a percentage of one processor; 0 at the first reading.
	CPU float64
}

const usageInterval = 2 * time.Second

// Meter measures resource usage. The zero value is ready to use. It is safe for concurrent use.
type Meter struct {
	mu      sync.Mutex
	at      time.Time
	asked   []int
	ticks   map[processID]uint64
	current map[int]Usage
}

// Read returns the usage of pids, omitting unknown usage. Results are cached for two seconds.
func (m *Meter) Read(pids []int, now time.Time) map[int]Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	isNew := func(pid int) bool { return !slices.Contains(m.asked, pid) }
	if now.Sub(m.at) >= usageInterval || now.Before(m.at) || slices.ContainsFunc(pids, isNew) {
		m.asked = slices.Clone(pids)
		m.refresh(pids, now)
	}
	return m.current
}
