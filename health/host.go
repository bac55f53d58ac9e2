package health

import (
	"runtime"
	"sync"
)

// Figure is one measured value. The zero value is one that is not known.
type Figure struct {
	Value float64
	Known bool
}

func known(v float64) Figure { return Figure{v, true} }

// Reading is what a machine is short of, or not.
type Reading struct {
	// CPU is the share of all processors in use since the reading before, in
	// percent; IOWait the share in which they waited for a disk. The first
	// reading knows neither.
	CPU, IOWait Figure
	// Load is the average number of runnable tasks in the last minute.
	Load Figure
	// CPUs is how many processors there are.
	CPUs int
	// MemoryFree is what can still be used, Memory all there is, in bytes.
	MemoryFree Figure
	Memory     float64
	// DiskFree is the room left for ordinary users on the disk that holds Path,
	// Disk its size, in bytes.
	DiskFree Figure
	Disk     float64
	Path     string
}

// Host reads the figures of this machine: of all of it, also where a container
// may use only a part.
type Host struct {
	path string

	mu   sync.Mutex
	last cpuTimes
}

// cpuTimes are what the processors have done since the machine was started, in
// seconds.
type cpuTimes struct {
	busy, waiting, idle float64
}

// NewHost returns a host that looks at the disk of a path, that of the queue's
// data for one; "" means none.
func NewHost(path string) *Host { return &Host{path: path} }

// Read measures. What this system does not tell is left unknown. The shares of
// the processors are since the last call.
func (h *Host) Read() Reading {
	r := Reading{CPUs: runtime.NumCPU(), Path: h.path}
	if h.path != "" {
		readDisk(h.path, &r)
	}
	times, ok := readSystem(&r)
	if !ok {
		return r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.CPU, r.IOWait = shares(h.last, times)
	h.last = times
	return r
}

// shares returns what happened between two readings; not known where there is
// no earlier one, or too little time between.
func shares(before, after cpuTimes) (busy, waiting Figure) {
	if before == (cpuTimes{}) {
		return Figure{}, Figure{}
	}
	b, w, i := after.busy-before.busy, after.waiting-before.waiting, after.idle-before.idle
	// The kernel counts in hundredths, and single counts may go back.
	all := b + w + i
	if all < 0.05 || b < 0 || w < -0.05 || i < -0.05 {
		return Figure{}, Figure{}
	}
	return known(min(100*b/all, 100)), known(min(max(100*w/all, 0), 100))
}
