package supervisor

import (
	"slices"
	"sync"
	"time"
)

// Usage is what a process uses together with all that it started.
type Usage struct {
	// Memory is the resident memory in bytes. Memory that several processes share counts for each.
	Memory int64
	// CPU is the share of one processor since the reading before, in percent; 0 at the first one.
	CPU float64
}

// usageInterval is the shortest time between two readings of a [Meter].
const usageInterval = 2 * time.Second

// Meter reads what processes use. The zero value works. Its method is safe for concurrent use.
type Meter struct {
	mu      sync.Mutex
	at      time.Time
	asked   []int
	ticks   map[processID]uint64 // processor time of each process at that time
	current map[int]Usage
}

// Read returns what the processes with these numbers use, by their numbers; nothing where that cannot be known. For the
// same processes it looks every two seconds at most, and returns what was found last in between.
func (m *Meter) Read(pids []int, now time.Time) map[int]Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	isNew := func(pid int) bool { return !slices.Contains(m.asked, pid) }
	if now.Sub(m.at) >= usageInterval || now.Before(m.at) || slices.ContainsFunc(pids, isNew) {
		m.asked = slices.Clone(pids)
		m.look(pids, now)
	}
	return m.current
}
