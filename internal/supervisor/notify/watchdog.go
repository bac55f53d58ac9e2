package notify

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Watchdog notifies systemd's watchdog until ctx is done: twice per WatchdogSec, and only after alive returned true. It
// returns immediately if the unit has no watchdog or watches another process.
//
// alive should check only problems that a restart can fix. It runs on this goroutine, so a check that hangs prevents
// notifications; after false, it is soon called again. Cancel ctx after the drain.
func (s *Systemd) Watchdog(ctx context.Context, alive func() bool) {
	within, err := s.watchdogTimeout()
	if err != nil {
		s.report(daemon.SdNotifyWatchdog, err)
		return
	}
	if within <= 0 {
		return
	}

	next := time.NewTimer(0)
	defer next.Stop()
	wasAlive := true
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}

		if alive() {
			s.send(daemon.SdNotifyWatchdog)
			wasAlive = true
			next.Reset(within / 2)
			continue
		}

		if wasAlive && s.events.WatchdogSkipped != nil {
			s.events.WatchdogSkipped(within)
		}
		wasAlive = false
		next.Reset(max(within/16, time.Millisecond))
	}
}
