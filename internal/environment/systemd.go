package environment

import (
	"cmp"
	"context"
	"time"

	"tendril/internal/supervisor/notify"
)

const (
	// systemMargin is added to the drain and twice the app's grace, since a deployment stops its replicas first.
	systemMargin  = 30 * time.Second
	extensionStep = time.Minute      // extension requested at a time if the app has no readiness limit
	extendEvery   = 10 * time.Second // while the app is prepared, well within the last extension
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

// await reports whether a channel was closed before the shutdown. Meanwhile it requests more time in each interval,
// if not 0.
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

// extendStart keeps requesting time from systemd while the first start's hooks and builds run. Earlier steps have
// only the unit's TimeoutStartSec, so that an unresponsive endpoint cannot delay startup forever.
func (s *serviceManager) extendStart(running context.Context) {
	if !s.opts.HasApp() || !s.await(running, s.life.announced, 0) {
		return
	}
	s.systemd.Status("preparing the app")
	if !s.life.running() {
		s.extendForApp()
		s.await(running, s.life.started, extendEvery) // then run takes over
	}
}

// run reports to systemd that the service is up once the app is ready, then its status and that it is alive.
func (s *serviceManager) run(running context.Context) {
	if s.opts.HasApp() {
		s.systemd.Status("starting the app")
		s.extendForApp()
		interval := time.Duration(0)
		if s.settings.now().AppReadyTimeout == 0 { // no limit
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

// reloading reports the start of a reload to systemd, and over its end.
func (s *serviceManager) reloading() (over func()) {
	if s.life.stopping() || s.opts.HasApp() && !isClosed(s.life.ready) {
		return func() {} // the service is not up yet and reports that itself
	}
	s.systemd.Reloading()
	return func() {
		if !s.life.stopping() {
			s.systemd.Ready(s.work.statusLine())
		}
	}
}
