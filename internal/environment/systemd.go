package environment

import (
	"cmp"
	"context"
	"time"

	"tendril/internal/supervisor/notify"
)

const (
	systemMargin  = 30 * time.Second
	extensionStep = time.Minute      // length of an extension if the app has no readiness timeout
	extendEvery   = 10 * time.Second // during startup; well below extensionStep
)

type serviceManager struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	work     *pipelines
	systemd  *notify.Systemd
	live     func() bool
}

func newServiceManager(opts *Options, life *lifecycle, set *settings, work *pipelines, live func() bool,
) *serviceManager {
	systemd := notify.New(notify.Events{
		SendFailed: func(err error) {
			opts.log("environment").Warn("systemd not notified", "err", err)
		},
		WatchdogSkipped: func(within time.Duration) {
			opts.log("environment").Error("process not responding, systemd will restart it",
				"within_ms", within.Milliseconds())
		},
	})
	return &serviceManager{opts: opts, life: life, settings: set, work: work, live: live, systemd: systemd}
}

func (s *serviceManager) extendForApp() {
	s.systemd.Extend(cmp.Or(s.settings.now().AppReadyTimeout, extensionStep) + systemMargin)
}

// await extends the start at each interval, unless that is 0. It returns false during a stop.
func (s *serviceManager) await(running context.Context, state <-chan struct{}, interval time.Duration) bool {
	var again <-chan time.Time
	if interval > 0 {
		again = time.Tick(interval)
	}
	for {
		select {
		case <-state:
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

// extendStart covers hooks and builds of the first start only, so that an unresponsive endpoint cannot delay startup
// beyond TimeoutStartSec.
func (s *serviceManager) extendStart(running context.Context) {
	if !s.opts.HasApp() || !s.await(running, s.life.announced, 0) {
		return
	}
	s.systemd.Status("preparing the app")
	if !s.life.running() {
		s.extendForApp()
		s.await(running, s.life.started, extendEvery) // run takes over
	}
}

func (s *serviceManager) run(running context.Context) {
	if s.opts.HasApp() {
		s.systemd.Status("starting the app")
		s.extendForApp()
		interval := time.Duration(0)
		if s.settings.now().AppReadyTimeout == 0 {
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

func (s *serviceManager) stopping(limit time.Duration) {
	s.systemd.Stopping()
	s.systemd.Extend(limit)
}

func (s *serviceManager) reloading() (over func()) {
	if s.life.stopping() || s.opts.HasApp() && !isClosed(s.life.ready) {
		return func() {}
	}
	s.systemd.Reloading()
	return func() {
		if !s.life.stopping() {
			s.systemd.Ready(s.work.statusLine())
		}
	}
}
