package health

import (
	"runtime"
	"sync"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
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
	// percent. The first reading does not know it.
	CPU  Figure
	Load Figure // the average number of runnable tasks in the last minute
	CPUs int    // how many processors there are
	// MemoryFree is what can still be used, Memory all there is, in bytes.
	MemoryFree Figure
	Memory     float64
	// DiskFree is what ordinary users may still use of the disk that holds Path, Disk its
	// size, in bytes.
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

// cpuTimes are seconds since the machine was started, of all processors.
type cpuTimes struct{ busy, idle float64 }

// NewHost returns a host that looks at the disk of a path, such as the data directory; ""
// means none.
func NewHost(path string) *Host { return &Host{path: path} }

// Read measures. What this system does not report is left unknown. CPU is the share since
// the last call.
func (h *Host) Read() Reading {
	r := Reading{CPUs: runtime.NumCPU(), Path: h.path}
	var disk unix.Statfs_t
	if h.path != "" && unix.Statfs(h.path, &disk) == nil {
		r.Disk = float64(disk.Blocks) * float64(disk.Bsize)
		r.DiskFree = known(float64(disk.Bavail) * float64(disk.Bsize))
	}

	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return r // not Linux
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
	r.CPU = busyShare(h.last, times)
	h.last = times
	return r
}

// cpuTimesOf adds up the kinds of time. That of virtual machines is a part of User and Nice.
func cpuTimesOf(c procfs.CPUStat) cpuTimes {
	return cpuTimes{busy: c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, idle: c.Idle + c.Iowait}
}

// busyShare returns the CPU usage between two readings in percent; not known where there
// is no earlier one, or too little time between.
func busyShare(before, after cpuTimes) Figure {
	busy, idle := after.busy-before.busy, after.idle-before.idle
	// The kernel counts in hundredths, and single counts may go back.
	if before == (cpuTimes{}) || busy+idle < 0.05 || busy < 0 || idle < -0.05 {
		return Figure{}
	}
	return known(min(100*busy/(busy+idle), 100))
}
