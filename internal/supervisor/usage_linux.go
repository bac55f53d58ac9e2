package supervisor

import "time"

// look reads /proc.
func (m *Meter) look(pids []int, now time.Time) {
	var all []process
	if seesItself() {
		all = processes()
	}
	m.current, m.ticks = measure(all, pids, m.ticks, now.Sub(m.at))
	m.at = now
}

// ticksPerSecond is the unit of CPU time in /proc, the same on all of Go's architectures.
const ticksPerSecond = 100

// measure sums the usage of each process and its descendants. before holds the CPU times at the previous reading, and
// since is the time since then. All CPU time of a new process counts.
func measure(all []process, pids []int, before map[processID]uint64, since time.Duration) (map[int]Usage,
	map[processID]uint64) {
	usage, ticks := map[int]Usage{}, map[processID]uint64{}
	for _, pid := range pids {
		var sum Usage
		var spent uint64
		found := descent(all, pid, func(process) bool { return false })
		for _, p := range found {
			sum.Memory += p.memory
			ticks[p.id()] = p.ticks
			spent += p.ticks - min(before[p.id()], p.ticks)
		}
		if before != nil && since > 0 {
			sum.CPU = float64(spent) / ticksPerSecond / since.Seconds() * 100
		}
		if len(found) > 0 {
			usage[pid] = sum
		}
	}
	return usage, ticks
}
