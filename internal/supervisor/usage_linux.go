package supervisor

import "time"

func (m *Meter) refresh(pids []int, now time.Time) {
	var all []process
	if seesItself() {
		all = processes()
	}
	m.current, m.ticks = measure(all, pids, m.ticks, now.Sub(m.at))
	m.at = now
}

const ticksPerSecond = 100

// measure includes the descendants of pids. before contains the previous reading's CPU times; all of a new process's
// CPU time counts.
func measure(all []process, pids []int, before map[processID]uint64, since time.Duration) (map[int]Usage,
	map[processID]uint64) {
	usage, ticks := map[int]Usage{}, map[processID]uint64{}
	for _, pid := range pids {
		var sum Usage
		var spent uint64
		found := descendants(all, pid, func(process) bool { return false })
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
