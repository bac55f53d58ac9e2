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
	*notify.Systemd
	*pipelines
	// live reports whether the process is responding.
	live func() bool
}

func newServiceManager(q *pipelines, live func() bool) *serviceManager {
	return &serviceManager{pipelines: q, live: live, Systemd: notify.New(notify.Events{
		SendFailed: func(err error) {
			q.Logger.Warn("systemd not notified", "component", "environment", "err", err)
		},
		WatchdogSkipped: func(within time.Duration) {
			q.Logger.Error("process not responding, systemd will restart it", "component", "environment",
				"within_ms", within.Milliseconds())
		},
	})}
}

// extendForApp asks systemd for as much time, from now on, as the app has to be ready.
func (m *serviceManager) extendForApp() {
	m.Extend(cmp.Or(m.s.AppReadyTimeout, untimed) + systemMargin)
}

// await waits for something, and reports whether it came before the stop. Meanwhile it asks for time in
// each interval, if there is one.
func (m *serviceManager) await(running context.Context, what <-chan struct{}, interval time.Duration) bool {
	var again <-chan time.Time
	if interval > 0 {
		again = time.Tick(interval)
	}
	for {
		select {
		case <-what:
			return !m.stopping()
		case <-m.draining:
			return false
		case <-running.Done():
			return false
		case <-again:
			m.extendForApp()
		}
	}
}

// extendStart asks systemd for time, again and again, as long as the hooks and builds of the first start run:
// each may take longer than the unit's TimeoutStartSec. What comes before them, as finding the queues, has that
// time alone: an endpoint that never answers must not hold up the start for ever.
func (m *serviceManager) extendStart(running context.Context) {
	if !m.HasApp() || !m.await(running, m.announced, 0) {
		return
	}
	m.Status("preparing the app")
	if !m.running() {
		m.extendForApp()
		m.await(running, m.started, extendEvery) // from then on see run
	}
}

// run tells systemd that the service is up, what it does, and, as long as it responds, that it is alive.
// A service whose app does not come up is not up either: systemd is asked for as much time as the app has.
func (m *serviceManager) run(running context.Context) {
	if m.HasApp() {
		m.Status("starting the app")
		m.extendForApp()
		interval := time.Duration(0)
		if m.s.AppReadyTimeout == 0 { // for ever
			interval = untimed
		}
		if !m.await(running, m.ready, interval) {
			return
		}
	}
	m.Ready(m.statusLine())
	m.Watchdog(running, func() bool {
		m.Status(m.statusLine())
		return m.live()
	})
}

// reloading tells systemd that a reload has begun; over, that it has ended.
func (m *serviceManager) reloading() (over func()) {
	if m.stopping() || m.HasApp() && !isClosed(m.ready) {
		return func() {} // the service is not up, and says so itself when it is
	}
	m.Reloading()
	return func() {
		if !m.stopping() {
			m.Ready(m.statusLine())
		}
	}
}
