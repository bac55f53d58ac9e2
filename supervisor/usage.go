package supervisor

import "time"

// Usage is what one process and all that it started take of the machine, since
// its last start.
type Usage struct {
	// Process is [Process.Name].
	Process string
	// PID is the run that is measured; 0 when the process does not run. Another
	// PID than before means that CPU began again from 0.
	PID int
	// CPU is the time that was computed, summed over all processors; it only
	// grows within one run, but where no control group could be made it misses
	// processes that ended without being waited for.
	CPU time.Duration
	// Memory is how many bytes of physical memory they hold (RSS); what several
	// share counts for each.
	Memory int64
	// Processes counts those alive. It is 0 where nothing is known: the process
	// does not run, or the system is not Linux.
	Processes int
}

// Usage measures each process, in the order given to New. It reads files of the
// system for every process there is: ask every few seconds, not in a loop.
func (s *Supervisor) Usage() []Usage {
	s.mu.Lock()
	keepers := s.keepers
	s.mu.Unlock()
	all := make([]Usage, len(s.procs))
	for i := range s.procs {
		if keepers != nil {
			all[i] = keepers[i].usage()
		}
		all[i].Process = s.procs[i].Name
	}
	return all
}

// usage measures the present run.
func (k *keeper) usage() Usage {
	k.mu.Lock()
	c := k.current
	k.mu.Unlock()
	if c == nil || c.usage == nil {
		return Usage{}
	}
	u := c.usage()
	u.PID = c.pid
	return u
}
