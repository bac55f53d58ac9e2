package environment

import (
	"cmp"
	"context"
	"time"

	"tendril/internal/supervisor/notify"
)

const (
	// systemMargin is for a stop beyond the drain and twice the app's grace: a deployment ends its replicas first.
	systemMargin = 30 * time.Second
	untimed      = time.Minute      // what systemd is asked for at a time where the app may take for ever
	extendEvery  = 10 * time.Second // while the app is prepared: well within what it was asked for last
)

// serviceManager tells systemd, where it runs this process, of the start, the stop, and what goes on in
// between.
type serviceManager struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	work     *pipelines
	systemd  *notify.Systemd
	// live reports whether the process is responding.
	live func() bool
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

// extendForApp asks systemd for as much time, from now on, as the app has to be ready.
func (s *serviceManager) extendForApp() {
	s.systemd.Extend(cmp.Or(s.settings.now().AppReadyTimeout, untimed) + systemMargin)
}

// await waits for something, and reports whether it came before the stop. Meanwhile it asks for time in
// each interval, if there is one.
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

// extendStart asks systemd for time, again and again, as long as the hooks and builds of the first start run:
// each may take longer than the unit's TimeoutStartSec. What comes before them, as finding the queues, has that
// time alone: an endpoint that never answers must not hold up the start for ever.
func (s *serviceManager) extendStart(running context.Context) {
	if !s.opts.HasApp() || !s.await(running, s.life.announced, 0) {
		return
	}
	s.systemd.Status("preparing the app")
	if !s.life.running() {
		s.extendForApp()
		s.await(running, s.life.started, extendEvery) // from then on see run
	}
}

// run tells systemd that the service is up, what it does, and, as long as it responds, that it is alive.
// A service whose app does not come up is not up either: systemd is asked for as much time as the app has.
func (s *serviceManager) run(running context.Context) {
	if s.opts.HasApp() {
		s.systemd.Status("starting the app")
		s.extendForApp()
		interval := time.Duration(0)
		if s.settings.now().AppReadyTimeout == 0 { // for ever
			interval = untimed
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

// reloading tells systemd that a reload has begun; over, that it has ended.
func (s *serviceManager) reloading() (over func()) {
	if s.life.stopping() || s.opts.HasApp() && !isClosed(s.life.ready) {
		return func() {} // the service is not up, and says so itself when it is
	}
	s.systemd.Reloading()
	return func() {
		if !s.life.stopping() {
			s.systemd.Ready(s.work.statusLine())
		}
	}
}
