package supervisor

import (
	"syscall"
	"time"
)

const (
	// survivorInterval is the time between two looks for what outlives the
	// leader of its group.
	survivorInterval = 50 * time.Millisecond
	// killWait is how long a group that got KILL may take to be gone: the
	// kernel needs a moment, or for ever where a disk hangs.
	killWait = 5 * time.Second
)

// terminate asks the process and all that it started to end, and returns when
// it is time for KILL. A stopped process could not obey before it is continued.
func (k *keeper) terminate(c *child, reason string) (killAt <-chan time.Time) {
	k.enter(Ending, func(s *Status) {
		if reason != "" {
			s.Reason = reason
		}
	})
	c.group.signal(syscall.SIGTERM)
	c.group.signal(syscall.SIGCONT)
	return time.After(k.opts.Grace)
}

// awaitEnd returns when the leader has ended, and reports whether the group had
// to be killed for it.
func (k *keeper) awaitEnd(c *child, killAt <-chan time.Time) (killed bool) {
	select {
	case <-c.exited:
		return false
	case <-killAt:
		k.killGroup(c, "it did not end within "+k.opts.Grace.String())
	case <-k.kill:
		k.killGroup(c, "the stop could not wait for it")
	}
	<-c.exited
	return true
}

// clearGroup ends what the leader left behind. Where the group was asked to end
// it has the rest of its grace, until killAt; else it is asked now.
func (k *keeper) clearGroup(c *child, killAt <-chan time.Time) {
	if c.group.empty() {
		return
	}
	if killAt == nil {
		killAt = k.terminate(c, "others that it started have not ended")
	}
	look := time.NewTicker(survivorInterval)
	defer look.Stop()
	for !c.group.empty() {
		select {
		case <-look.C:
			continue
		case <-killAt:
			k.killGroup(c, "others that it started did not end within "+k.opts.Grace.String())
		case <-k.kill:
			k.killGroup(c, "the stop could not wait for others that it started")
		}
		awaitEmpty(c.group)
		return
	}
}

func (k *keeper) killGroup(c *child, reason string) {
	c.group.signal(syscall.SIGKILL)
	call(k.opts.Events.Killed, Killed{Process: k.proc.Name, PID: c.pid, Reason: reason})
}

// awaitEmpty gives the kernel time to carry out a KILL.
func awaitEmpty(g group) {
	deadline := time.Now().Add(killWait)
	for !g.empty() && time.Now().Before(deadline) {
		time.Sleep(survivorInterval / 10)
	}
}
