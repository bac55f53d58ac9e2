package health

import (
	"path/filepath"
	"runtime"
	"sync"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Figure is a measured value. The zero value is unknown.
type Figure struct {
	Value float64
	Known bool
}

func known(v float64) Figure { return Figure{v, true} }

// Reading is one measurement of the machine.
type Reading struct {
	CPU  Figure // percent of all processors since the previous reading
	Load Figure // over one minute
	CPUs int
	// Memory and disk values are in bytes.
	MemoryFree Figure
	Memory     float64
	// DiskFree excludes space reserved for root.
	DiskFree    Figure
	Disk        float64
	Path, Mount string
}

// Host measures the whole machine, even in a container. A nil Host measures nothing.
type Host struct {
	path string

	mu   sync.Mutex
	last cpuTimes
}

type cpuTimes struct{ busy, idle float64 }

// NewHost returns a Host for the disk that contains path, or for no disk if path is "".
func NewHost(path string) *Host { return &Host{path: path} }

// Read measures the host. Values that the system does not report are unknown.
func (h *Host) Read() Reading {
	if h == nil {
		return Reading{}
	}
	r := Reading{CPUs: runtime.NumCPU(), Path: h.path}
	var disk unix.Statfs_t
	if h.path != "" && unix.Statfs(h.path, &disk) == nil {
		r.Disk = float64(disk.Blocks) * float64(disk.Bsize)
		r.DiskFree = known(float64(disk.Bavail) * float64(disk.Bsize))
		r.Mount = mountOf(h.path)
	}

	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return r
	}
	if load, err := fs.LoadAvg(); err == nil {
		r.Load = known(load.Load1)
	}
	if m, err := fs.Meminfo(); err == nil && m.MemTotalBytes != nil && m.MemAvailableBytes != nil {
		r.Memory, r.MemoryFree = float64(*m.MemTotalBytes), known(float64(*m.MemAvailableBytes))
	}

	stat, err := fs.Stat()
	if err != nil {
		return r
	}

	times := cpuTimesOf(stat.CPUTotal)
	h.mu.Lock()
	defer h.mu.Unlock()
	r.CPU = busyPercent(h.last, times)
	h.last = times
	return r
}

func mountOf(path string) string {
	path, err := filepath.Abs(path)
	var of, above unix.Stat_t
	if err != nil || unix.Stat(path, &of) != nil {
		return path
	}
	for path != "/" && unix.Stat(filepath.Dir(path), &above) == nil && above.Dev == of.Dev {
		path = filepath.Dir(path)
	}
	return path
}

func cpuTimesOf(c procfs.CPUStat) cpuTimes {
	return cpuTimes{busy: c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, idle: c.Idle + c.Iowait}
}

func busyPercent(before, after cpuTimes) Figure {
	busy, idle := after.busy-before.busy, after.idle-before.idle
	// The kernel counts hundredths of a second, and counters may decrease.
	if before == (cpuTimes{}) || busy+idle < 0.05 || busy < 0 || idle < -0.05 {
		return Figure{}
	}
	return known(min(100*busy/(busy+idle), 100))
}
