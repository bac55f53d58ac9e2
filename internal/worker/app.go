package worker

import (
	"context"
	"time"

	"tendril/queue"
)

// throttleFirst and throttleLimit bound the back-off; throttleLongest bounds the pause that a target may request.
const (
	throttleFirst   = 2 * time.Second
	throttleLimit   = 30 * time.Second
	throttleLongest = 5 * time.Minute
)

const (
	probeEvery   = 250 * time.Millisecond
	probeLimit   = 5 * time.Second
	probeTimeout = 60 * time.Second
	probeAgain   = time.Second // after the first failed probe of an idle app
)

// downAfter is the number of consecutive failed probes of an idle app that closes the gate.
const downAfter = 2

type appMonitor struct {
	core *core
	gate *gate
	app  interface{ Probe(context.Context) error }

	readinessSet bool // Worker.Gate was called
	stopProbe    context.CancelFunc
	outages      int
	// Deliveries started before answered cannot report an outage. alive is the last response or successful probe.
	answered, alive time.Time
	pauses          throttle
}

type throttle struct {
	from, until time.Time
	count       int // pauses since the target last accepted a message
}

// fresh is false if the delivery started before the latest pause ended, and must not lengthen the back-off.
func (t *throttle) pause(asked time.Duration, started, now time.Time, random float64) (d time.Duration, fresh bool) {
	if !t.from.IsZero() && started.Before(t.until) {
		return max(asked, t.until.Sub(now), time.Second), false
	}
	if asked > 0 {
		return asked, true
	}
	return retryWait(t.count+1, throttleFirst, throttleLimit, random), true
}

func (a *appMonitor) throttled(res *queue.Result, started, now time.Time) (pause time.Duration, closed bool) {
	pause, fresh := a.pauses.pause(res.RetryAfter, started, now, a.core.opts.Random())
	if a.core.phase != running {
		return pause, false
	}
	if fresh {
		a.pauses.count++
		a.pauses.from = now
	}
	if until := now.Add(min(pause, throttleLongest)); until.After(a.pauses.until) {
		a.pauses.until = until
		notify(a.core, a.core.events.Throttled,
			Throttled{For: until.Sub(now), Reason: res.Reason, Consecutive: a.pauses.count})
	}
	a.gate.close(Throttling, "the target accepts no messages: "+res.Reason, now)
	return pause, true
}

func (a *appMonitor) learn(startedAt time.Time, res *queue.Result, now time.Time) (answered bool) {
	switch {
	case res.Outcome == queue.Throttled, res.Outcome == queue.Postponed, res.Unsent:
		return false
	case res.Outcome == queue.Unreached:
		a.unreached(res.Reason, startedAt, now)
		return false
	}

	a.outages = 0
	if res.Outcome == queue.Done || res.Status != 0 {
		a.alive = now
	}
	if startedAt.After(a.pauses.from) {
		a.pauses.count = 0
	}
	if a.core.limit < a.core.opts.Concurrency {
		a.core.limit++
	}
	return true
}

// unreached waits longer after each outage, because an app may pass probes but accept no deliveries.
func (a *appMonitor) unreached(reason string, started, now time.Time) {
	if started.Before(a.answered) || a.core.phase != running {
		return
	}
	if !a.gate.has(AppDown) {
		a.outages++
	}
	a.gate.close(AppDown, "the app is not ready: "+reason, now)
	a.probe(retryWait(a.outages, probeEvery, probeLimit, a.core.opts.Random()))
}

// returnable reports whether a message that did not reach the app is returned immediately. If returns count as
// receives, only the first outage qualifies: an app that accepts only probes would use up all receives within seconds.
func (a *appMonitor) returnable() bool {
	outages := a.outages
	if !a.gate.has(AppDown) {
		outages++
	}
	return a.core.opts.UncountedReturns || outages <= 1
}

func (a *appMonitor) setReady(isReady bool, reason string, now time.Time) {
	a.readinessSet = true
	if !isReady {
		a.gate.close(NotReady, reason, now)
		return
	}
	if a.gate.has(NotReady) && !a.answered.IsZero() {
		a.core.limit = 1 // The app has restarted.
	}
	a.setReachable(now)
	a.gate.lift(NotReady)
}

func (a *appMonitor) setReachable(now time.Time) {
	a.stopProbing()
	a.alive = now
	if !a.gate.has(AppDown) {
		return
	}
	if !a.answered.IsZero() {
		a.core.limit = 1
	}
	a.answered = now
	a.gate.lift(AppDown)
}

func (a *appMonitor) watchIdle(now time.Time) {
	if a.core.opts.ProbeIdle == 0 || a.core.phase != running || a.core.inWork > 0 || a.gate.has(NotReady) || a.gate.has(AppDown) ||
		now.Sub(a.alive) < a.core.opts.ProbeIdle {
		return
	}
	a.probe(0)
}

func (a *appMonitor) probe(wait time.Duration) {
	if a.stopProbe != nil {
		return
	}
	ctx, cancel := context.WithCancel(a.core.callCtx)
	a.stopProbe = cancel
	a.core.tasks.Go(func() { a.prober(ctx, wait) })
}

func (a *appMonitor) stopProbing() {
	if a.stopProbe != nil {
		a.stopProbe()
		a.stopProbe = nil
	}
}

func (a *appMonitor) prober(ctx context.Context, wait time.Duration) {
	var first time.Time
	for failures := 1; ; failures++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}

		began := time.Now()
		if first.IsZero() {
			first = began
		}
		probing, cancel := context.WithTimeout(ctx, probeTimeout)
		err := a.app.Probe(probing)
		cancel()
		var ended bool
		if wait, ended = a.probed(ctx, err, failures, began, first); ended {
			return
		}
	}
}

func (a *appMonitor) probed(ctx context.Context, err error, failures int, began, first time.Time) (
	wait time.Duration, over bool,
) {
	now := time.Now()
	a.core.mu.Lock()
	defer a.core.mu.Unlock()
	defer a.core.wakeAt(now) // the maintenance loop applies the gate's state
	isDown := a.gate.has(AppDown)
	switch {
	case ctx.Err() != nil:
		return 0, true
	case err == nil || !isDown && began.Before(a.alive):
		a.setReachable(now)
		return 0, true
	case !isDown && failures < downAfter:
		return probeAgain, false
	}

	// An idle app counts as down since its last response or successful probe.
	since := later(first.Add(-a.core.opts.ProbeIdle), a.alive)
	a.gate.close(AppDown, "the app is not ready: "+err.Error(), since)
	return retryWait(failures, probeEvery, probeLimit, a.core.opts.Random()), false
}
