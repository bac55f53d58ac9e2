package environment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tendril/health"
)

// systemMargin is what a stop may take beyond the drain and the app's grace, which counts
// twice: a deployment under way ends its copies first.
const systemMargin = 30 * time.Second

const (
	// untimed is what systemd is asked for at a time where the app may take for ever.
	untimed = time.Minute
	// extendEvery is how often it is asked while the app is prepared: well within what
	// it was asked for last.
	extendEvery = 10 * time.Second
)

// appTime is what systemd is asked for, from now on, until the app is ready.
func (e *Environment) appTime() time.Duration {
	return cmp.Or(e.s.AppReadyTimeout, untimed) + systemMargin
}

// extendStart asks systemd for time, again and again, as long as the hooks and builds of
// the first start run: each may take longer than the unit's TimeoutStartSec. What comes
// before them, as finding the queues, has that time alone: an endpoint that never
// answers must not hold up the start for ever.
func (e *Environment) extendStart(running context.Context) {
	if !e.hasApp() || !e.during(running, e.announced) {
		return
	}
	e.system.Status("preparing the app")
	again := time.NewTicker(extendEvery)
	defer again.Stop()
	for {
		select {
		case <-e.started: // from here on see awaitOwnApp
			return
		default:
			e.system.Extend(e.appTime())
		}
		select {
		case <-e.started:
		case <-e.draining:
			return
		case <-running.Done():
			return
		case <-again.C:
		}
	}
}

// during waits for something, and reports whether it came before the stop.
func (e *Environment) during(running context.Context, what <-chan struct{}) bool {
	select {
	case <-what:
		return !e.stopping()
	case <-e.draining:
	case <-running.Done():
	}
	return false
}

// notifySystemd notifies systemd, where it runs us, that the service is up, what it
// does, and, as long as it does, that it is alive.
func (e *Environment) notifySystemd(running context.Context) {
	if !e.awaitOwnApp(running) {
		return
	}
	e.system.Ready(e.systemStatus())
	e.system.Watchdog(running, func() bool {
		e.system.Status(e.systemStatus())
		return e.QueuesOnly || !slices.ContainsFunc(e.monitor.Live(), func(c health.Check) bool { return !c.OK })
	})
}

// awaitOwnApp waits until the app that runs here was ready once: a service whose app
// does not come up is not up either. Meanwhile systemd is asked for as much time as the
// app has. It returns false when the stop comes first.
func (e *Environment) awaitOwnApp(running context.Context) bool {
	if e.app == nil {
		return true
	}
	e.system.Status("starting the app")
	e.system.Extend(e.appTime())
	again := time.NewTicker(untimed)
	defer again.Stop()
	for {
		select {
		case <-e.ready:
			return !e.stopping()
		case <-e.draining:
			return false
		case <-running.Done():
			return false
		case <-again.C:
			if e.s.AppReadyTimeout == 0 { // for ever
				e.system.Extend(e.appTime())
			}
		}
	}
}

// notifyReload notifies systemd that a reload has begun; over, that it has ended.
func (e *Environment) notifyReload() (over func()) {
	if e.stopping() || e.app != nil && !e.app.WasReady() {
		return func() {} // the service is not up, and says so itself when it is
	}
	e.system.Reloading()
	return func() {
		if !e.stopping() {
			e.system.Ready(e.systemStatus())
		}
	}
}

// systemStatus is one line for 'systemctl status'.
func (e *Environment) systemStatus() string {
	if len(e.lines) == 0 {
		return "serving queues at " + e.endpoint
	}
	inWork, done := 0, int64(0)
	for _, l := range e.lines {
		st := l.worker.Status()
		inWork += st.InWork
		done += st.Counts.Done
	}
	word := "working"
	if e.stopping() {
		word = "draining"
	}
	return fmt.Sprintf("%s on %s: %d in work, %d done", word, plural(len(e.lines), "queue", "queues"), inWork, done)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
