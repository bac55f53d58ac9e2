package environment

import (
	"cmp"
	"context"
	"time"

	"tendril/internal/supervisor/notify"
)

const (
	// systemMargin is added to every period that systemd is asked for.
	systemMargin  = 30 * time.Second
	extensionStep = time.Minute      // each extension if the app has no readiness timeout
	extendEvery   = 10 * time.Second // how often to extend during startup; well below extensionStep
)

// serviceManager reports startup, status and shutdown to systemd.
type serviceManager struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	work     *pipelines
	systemd  *notify.Systemd
	live     func() bool
}

func newServiceManager(opts *Options, life *lifecycle, set *settings, work *pipelines, live func() bool) *serviceManager {
	return &serviceManager{opts: opts, life: life, settings: set, work: work, live: live, systemd: notify.New(notify.Events{
		SendFailed: func(err error) {
			opts.Logger.Warn("systemd not notified", "component", "environment", "err", err)
		},
		WatchdogSkipped: func(within time.Duration) {
			opts.Logger.Error("process not responding, systemd will restart it", "component", "environment",
				"within_ms", within.Milliseconds())
		},
	})}
}

func (s *serviceManager) extendForApp() {
	s.systemd.Extend(cmp.Or(s.settings.now().AppReadyTimeout, extensionStep) + systemMargin)
}

// await waits for a channel and reports whether it was closed before shutdown. While waiting, it requests more time
// from systemd once per interval, unless interval is 0.
func (s *serviceManager) await(running context.Context, what <-chan struct{}, interval time.Duration) bool {
	var again <-chan time.Time
	if interval > 0 {
		again = time.Tick(interval)
	}
	for {
		select {
		case <-what:
			return !s.life.stopping()
		case <-s.life.draining:
			return false
		case <-running.Done():
			return false
		case <-again:
			s.extendForApp()
		}
	}
}

// extendStart keeps requesting time from systemd while hooks and builds of the first start run. Earlier steps get
// only the unit's TimeoutStartSec, so that an unresponsive endpoint cannot delay startup forever.
func (s *serviceManager) extendStart(running context.Context) {
	if !s.opts.HasApp() || !s.await(running, s.life.announced, 0) {
		return
	}
	s.systemd.Status("preparing the app")
	if !s.life.running() {
		s.extendForApp()
		s.await(running, s.life.started, extendEvery) // run extends the start from here on
	}
}

// run tells systemd that the service is up once the app is ready. It then reports status and watchdog signals.
func (s *serviceManager) run(running context.Context) {
	if s.opts.HasApp() {
		s.systemd.Status("starting the app")
		s.extendForApp()
		interval := time.Duration(0)
		if s.settings.now().AppReadyTimeout == 0 { // the app has no readiness timeout
			interval = extensionStep
		}
		if !s.await(running, s.life.ready, interval) {
			return
		}
	}
	s.systemd.Ready(s.work.statusLine())
	s.systemd.Watchdog(running, func() bool {
		s.systemd.Status(s.work.statusLine())
		return s.live()
	})
}

// stopping tells systemd that the shutdown has begun and takes at most this long.
func (s *serviceManager) stopping(limit time.Duration) {
	s.systemd.Stopping()
	s.systemd.Extend(limit)
}

// reloading tells systemd that a reload has started. The returned function reports its end.
func (s *serviceManager) reloading() (over func()) {
	if s.life.stopping() || s.opts.HasApp() && !isClosed(s.life.ready) {
		return func() {} // the service is not up yet, and startup reports that
	}
	s.systemd.Reloading()
	return func() {
		if !s.life.stopping() {
			s.systemd.Ready(s.work.statusLine())
		}
	}
}
