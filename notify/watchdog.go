package notify

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Watchdog tells systemd that the process works, until ctx is done: twice in each
// WatchdogSec of the unit, and only after alive returned true. It returns at
// once when the unit has no watchdog, or watches another process.
//
// alive should ask what a restart would mend, such as the process's main loop, and
// nothing outside of the process. It is called on this goroutine: one that hangs keeps
// the watchdog from being told, which is right for a process that hangs. After a no
// it is asked again soon, so that one slow moment is no reason for a restart.
//
// Let it run through the drain, and end ctx after it.
func (s *Systemd) Watchdog(ctx context.Context, alive func() bool) {
	within, err := s.watchdogTimeout()
	if err != nil {
		s.reportError(daemon.SdNotifyWatchdog, err)
		return
	}
	if within <= 0 {
		return
	}
	next := time.NewTimer(0)
	defer next.Stop()
	told := true
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		if alive() {
			s.send(daemon.SdNotifyWatchdog)
			told = true
			next.Reset(within / 2)
			continue
		}
		if told && s.events.Withheld != nil {
			s.events.Withheld(Withheld{Within: within})
		}
		told = false
		next.Reset(max(within/16, time.Millisecond))
	}
}
