package health

import "github.com/prometheus/procfs"

// readSystem fills in load and memory, and returns the processors' times; false
// where there are none.
func readSystem(r *Reading) (cpuTimes, bool) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return cpuTimes{}, false
	}
	if load, err := fs.LoadAvg(); err == nil {
		r.Load = known(load.Load1)
	}
	if m, err := fs.Meminfo(); err == nil && m.MemTotalBytes != nil && m.MemAvailableBytes != nil {
		r.Memory, r.MemoryFree = float64(*m.MemTotalBytes), known(float64(*m.MemAvailableBytes))
	}
	stat, err := fs.Stat()
	if err != nil {
		return cpuTimes{}, false
	}
	c := stat.CPUTotal
	return cpuTimes{busy: c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, waiting: c.Iowait, idle: c.Idle}, true
}
