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

// ticksPerSecond is the unit of processor time in /proc, which is the same on all architectures that Go runs on.
const ticksPerSecond = 100

// measure adds up what each of the processes and its descendants use. before are the processor times at the last
// reading, which was so long ago; a process that is new since counts with all of its time.
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
