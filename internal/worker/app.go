package worker

import (
	"context"
	"time"

	"tendril/queue"
)

// throttleFirst and throttleLimit are the base and limit of the back-off. throttleLongest limits a requested
// pause.
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

// downAfter is the number of consecutive failed probes of an idle app after which the gate closes.
const downAfter = 2

type appMonitor struct {
	core *core
	gate *gate
	app  prober

	readinessSet bool
	stopProbe    context.CancelFunc
	outages      int
	// A delivery started before reachableSince does not indicate an outage. aliveAt is the time of the last
	// response, successful probe or report that the app is ready.
	reachableSince, aliveAt time.Time
	pauses                  throttle
}

type prober interface{ Probe(context.Context) error }

type throttle struct {
	from, until time.Time
	count       int // pauses since the target last accepted a message
}

// fresh is false if the delivery started before the latest pause ended; such a pause must not lengthen the back-off.
func (t *throttle) nextPause(asked time.Duration, started, now time.Time, random float64) (d time.Duration, fresh bool) {
	if started.Before(t.until) {
		return max(asked, t.until.Sub(now), time.Second), false
	}
	if asked > 0 {
		return asked, true
	}
	return retryWait(t.count+1, throttleFirst, throttleLimit, random), true
}

// pauseReceiving closes the gate for the returned pause, or throttleLongest if less, unless the worker is
// stopping.
func (a *appMonitor) pauseReceiving(res *queue.Result, started, now time.Time) time.Duration {
	pause, fresh := a.pauses.nextPause(res.RetryAfter, started, now, a.core.opts.Random())
	if a.core.phase != running {
		return pause
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
	a.gate.close(Throttling, "the target does not accept messages: "+res.Reason, now)
	a.core.wakeAt(a.pauses.until)
	return pause
}

func (a *appMonitor) endPauseIfOver(now time.Time) {
	if a.gate.has(Throttling) && !now.Before(a.pauses.until) {
		a.core.limit = 1 // deliveries resume one at a time
		a.gate.lift(Throttling)
	}
}

func (a *appMonitor) recordResult(startedAt time.Time, res *queue.Result, now time.Time) (responded bool) {
	switch {
	case res.Outcome == queue.Throttled, res.Outcome == queue.Postponed, res.Unsent:
		return false
	case res.Outcome == queue.Unreached:
		a.recordUnreached(res.Reason, startedAt, now)
		return false
	}

	a.outages = 0
	if res.Outcome == queue.Done || res.Status != 0 {
		a.aliveAt = now
	}
	if startedAt.After(a.pauses.from) {
		a.pauses.count = 0
	}
	if a.core.limit < a.core.opts.Concurrency {
		a.core.limit++
	}
	return true
}

// recordUnreached closes the gate and starts probing. It waits longer after each outage in a row, because an app
// may pass probes but accept no deliveries.
func (a *appMonitor) recordUnreached(reason string, started, now time.Time) {
	if started.Before(a.reachableSince) || a.core.phase != running {
		return
	}
	if !a.gate.has(AppDown) {
		a.outages++
	}
	a.gate.close(AppDown, "the app is not ready: "+reason, now)
	a.startProbing(retryWait(a.outages, probeEvery, probeLimit, a.core.opts.Random()))
}

// returnable reports whether a message that did not reach the app is returned immediately. If returns count as
// receives, only the first outage allows it: an app that accepts only probes would use up all receives within
// seconds.
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
	if a.gate.has(NotReady) && !a.reachableSince.IsZero() {
		a.core.limit = 1 // the app has probably restarted
	}
	a.setReachable(now)
	a.gate.lift(NotReady)
}

func (a *appMonitor) setReachable(now time.Time) {
	a.stopProbing()
	a.aliveAt = now
	if !a.gate.has(AppDown) {
		return
	}
	if !a.reachableSince.IsZero() {
		a.core.limit = 1
	}
	a.reachableSince = now
	a.gate.lift(AppDown)
}

func (a *appMonitor) probeIfIdle(now time.Time) {
	interval := a.core.opts.ProbeIdle
	isIdle := a.core.inWork == 0 && now.Sub(a.aliveAt) >= interval
	isKnownDown := a.gate.has(NotReady) || a.gate.has(AppDown)
	if interval > 0 && a.core.phase == running && isIdle && !isKnownDown {
		a.startProbing(0)
	}
}

func (a *appMonitor) startProbing(wait time.Duration) {
	if a.stopProbe != nil {
		return
	}
	ctx, cancel := context.WithCancel(a.core.callCtx)
	a.stopProbe = cancel
	a.core.tasks.Go(func() { a.runProbes(ctx, wait) })
}

func (a *appMonitor) stopProbing() {
	if a.stopProbe != nil {
		a.stopProbe()
		a.stopProbe = nil
	}
}

type probe struct {
	number           int
	firstAt, startAt time.Time
	err              error
}

func (a *appMonitor) runProbes(ctx context.Context, wait time.Duration) {
	var p probe
	for again := true; again; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		p.run(ctx, a.app)
		wait, again = a.probeEnded(ctx, &p)
	}
}

func (p *probe) run(ctx context.Context, app prober) {
	p.number++
	p.startAt = time.Now()
	if p.number == 1 {
		p.firstAt = p.startAt
	}

	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	p.err = app.Probe(ctx)
}

func (a *appMonitor) probeEnded(ctx context.Context, p *probe) (wait time.Duration, again bool) {
	now := time.Now()
	a.core.mu.Lock()
	defer a.core.mu.Unlock()
	defer a.core.wakeAt(now)
	if ctx.Err() != nil {
		return 0, false
	}

	isDown := a.gate.has(AppDown)
	hasRespondedSince := p.startAt.Before(a.aliveAt)
	switch {
	case p.err == nil || !isDown && hasRespondedSince:
		a.setReachable(now)
		return 0, false
	case !isDown && p.number < downAfter:
		return probeAgain, true
	}

	// An idle app counts as down since it was last known alive, but for at most ProbeIdle before the first probe.
	downSince := later(p.firstAt.Add(-a.core.opts.ProbeIdle), a.aliveAt)
	a.gate.close(AppDown, "the app is not ready: "+p.err.Error(), downSince)
	return retryWait(p.number, probeEvery, probeLimit, a.core.opts.Random()), true
}
