package worker

import (
	"context"
	"time"

	"tendril/queue"
)

// The pauses after a target refused to take anything: about the first, the longest by its own
// growth, and the longest that a target may ask for; its message may have to wait longer.
const (
	throttleFirst   = 2 * time.Second
	throttleLimit   = 30 * time.Second
	throttleLongest = 5 * time.Minute
)

// The rhythm of probing: the first wait, the longest, the longest probe, and the
// wait after the first failure of an idle app.
const (
	probeEvery   = 250 * time.Millisecond
	probeLimit   = 5 * time.Second
	probeTimeout = 60 * time.Second
	probeAgain   = time.Second
)

// downAfter is how many consecutive probes an idle app has to fail before the gate
// closes: a single failure may be chance.
const downAfter = 2

// appMonitor closes the gate while the app refuses connections or takes nothing for
// now, and opens it when the app answers probes or the pause is over.
type appMonitor struct {
	core *core
	gate *gate
	app  interface{ Probe(context.Context) error }

	fixed     bool               // the environment said whether the app is ready
	stopProbe context.CancelFunc // ends the prober; nil when none runs
	// outages counts the times that the gate closed for AppDown since the app last
	// answered a delivery.
	outages int
	// answered is when the app last began to answer. A delivery begun before that says
	// nothing about the app of now. alive is when it last answered a delivery or passed
	// a probe.
	answered, alive time.Time
	pauses          throttle
}

// throttle is the state of a target that has too much to do.
type throttle struct {
	from, until time.Time // the latest pause
	count       int       // pauses since the target last took a message
}

// pause returns how long to leave the target alone after it refused a
// delivery that began at started, and whether that is a new pause. A delivery
// begun before the latest pause tells nothing new.
func (t *throttle) pause(asked time.Duration, started, now time.Time, random float64) (d time.Duration, fresh bool) {
	if !t.from.IsZero() && started.Before(t.until) {
		return max(asked, t.until.Sub(now), time.Second), false
	}
	if asked > 0 {
		return asked, true
	}
	return retryWait(t.count+1, throttleFirst, throttleLimit, random), true
}

// throttled closes the gate for a time, after a delivery that began at started
// was refused, and returns when the message may come again. closed reports whether the
// gate is closed for that.
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
	a.gate.close(Throttling, "the target takes nothing for now: "+res.Reason, now)
	return pause, true
}

// learn takes the result of a delivery as news about the app, and reports whether the app
// answered. It says nothing if the app was not asked.
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

// unreached closes the gate after a delivery that began at started and put
// nothing on the wire, and starts the prober. Its first probe comes later each
// time that the app answers probes but no delivery.
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

// returnable reports whether a message that did not reach the app is returned at once. Where
// that costs a receive, only in the first outage since the app last answered: an app that
// passes probes and takes no delivery would use up all receives within seconds.
func (a *appMonitor) returnable() bool {
	outages := a.outages
	if !a.gate.has(AppDown) {
		outages++
	}
	return a.core.opts.UncountedReturns || outages <= 1
}

// setReady takes from the environment whether the app is ready.
func (a *appMonitor) setReady(isReady bool, reason string, now time.Time) {
	a.fixed = true
	if !isReady {
		a.gate.close(NotReady, reason, now)
		return
	}
	if a.gate.has(NotReady) && !a.answered.IsZero() {
		a.core.limit = 1 // a new start of an app that answered before
	}
	a.answers(now)
	a.gate.lift(NotReady)
}

// answers opens the gate for an app that accepts connections (again), and
// starts slowly after an outage.
func (a *appMonitor) answers(now time.Time) {
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

// watchIdle probes an app that has answered nothing for a while, has nothing in
// work, and would otherwise be found dead only by its next message.
func (a *appMonitor) watchIdle(now time.Time) {
	if a.core.opts.ProbeIdle == 0 || a.core.phase != running || a.core.inWork > 0 || a.gate.has(NotReady) || a.gate.has(AppDown) ||
		now.Sub(a.alive) < a.core.opts.ProbeIdle {
		return
	}
	a.probe(0)
}

// probe starts a prober whose first probe comes after wait, unless one runs.
func (a *appMonitor) probe(wait time.Duration) {
	if a.stopProbe != nil {
		return
	}
	ctx, cancel := context.WithCancel(a.core.callCtx)
	a.stopProbe = cancel
	a.core.tasks.Go(func() { a.prober(ctx, wait) })
}

// stopProbing ends the prober, if one runs.
func (a *appMonitor) stopProbing() {
	if a.stopProbe != nil {
		a.stopProbe()
		a.stopProbe = nil
	}
}

// prober probes the app until it answers or ctx is done.
func (a *appMonitor) prober(ctx context.Context, wait time.Duration) {
	var first time.Time // when the first probe started
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
		var over bool
		if wait, over = a.probed(ctx, err, failures, began, first); over {
			return
		}
	}
}

// probed takes the result of a probe and returns when the next one is, or that the app
// need not be probed any more.
func (a *appMonitor) probed(ctx context.Context, err error, failures int, began, first time.Time) (
	wait time.Duration, over bool,
) {
	now := time.Now()
	a.core.mu.Lock()
	defer a.core.mu.Unlock()
	defer a.core.wakeAt(now) // the maintenance loop obeys the gate
	isDown := a.gate.has(AppDown)
	switch {
	case ctx.Err() != nil:
		return 0, true
	case err == nil || !isDown && began.Before(a.alive):
		a.answers(now)
		return 0, true
	case !isDown && failures < downAfter:
		return probeAgain, false
	}

	// An idle app is taken to be down from its last sign of life on, as far as it was
	// watched.
	since := later(first.Add(-a.core.opts.ProbeIdle), a.alive)
	a.gate.close(AppDown, "the app is not ready: "+err.Error(), since)
	return retryWait(failures, probeEvery, probeLimit, a.core.opts.Random()), false
}
