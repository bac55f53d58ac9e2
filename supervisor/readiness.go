package supervisor

import (
	"context"
	"time"
)

const (
	// unhealthyAfter is how many failed checks in a row undo readiness: one
	// alone may be a full backlog.
	unhealthyAfter = 2
	// recheckInterval is the time between the checks that decide about it.
	recheckInterval = time.Second
	// eagerFor is how long a new process is checked at the short interval.
	eagerFor = 10 * time.Second
)

// readiness is what the checks of one run of a process have shown so far.
type readiness struct {
	ready  bool
	failed int
	// since is when the process was started or last ready.
	since time.Time
	// lateAfter is when to report next, counted from since.
	lateAfter time.Duration
}

// readyStep is what follows one check.
type readyStep struct {
	// changed: readiness.ready is new. late: report that it is still not ready.
	changed, late bool
	// after is the time since the process was started or last ready.
	after time.Duration
	// wait is the time until the next check.
	wait time.Duration
}

// next takes in the result of one check.
func (r *readiness) next(passed bool, now time.Time, o *Options) readyStep {
	step := readyStep{after: now.Sub(r.since)}
	switch {
	case passed:
		step.changed = !r.ready
		r.ready, r.failed, r.since = true, 0, now
		step.wait = o.HealthInterval
		return step
	case r.ready:
		r.failed++
		step.wait = min(recheckInterval, o.HealthInterval)
		if r.failed < unhealthyAfter {
			return step
		}
		r.ready, step.changed = false, true
		r.lateAfter = o.ReadyLateAfter
		return step
	}
	if step.after >= r.lateAfter {
		step.late = true
		for r.lateAfter <= step.after {
			r.lateAfter *= 2
		}
	}
	step.wait = o.ReadyInterval
	if step.after >= eagerFor {
		step.wait = max(step.wait, recheckInterval)
	}
	return step
}

// beginProbing checks readiness until the returned func is called, which
// returns only when no check runs any more.
func (k *keeper) beginProbing(c *child) (stop func()) {
	check := k.proc.check()
	if check.IsZero() {
		k.setReady(true, "", 0)
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.probeUntil(ctx, check, c)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (k *keeper) probeUntil(ctx context.Context, check Check, c *child) {
	state := readiness{since: time.Now(), lateAfter: k.opts.ReadyLateAfter}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := k.probe(ctx, check, c, state.ready)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			k.mu.Lock()
			k.status.LastReady = time.Now()
			k.mu.Unlock()
		}
		step := state.next(err == nil, time.Now(), k.opts)
		timer.Reset(step.wait)
		k.apply(step, err)
	}
}

// probe passes when the check does and it is the app that answered it, as far
// as one can see.
func (k *keeper) probe(ctx context.Context, check Check, c *child, ready bool) error {
	err := k.ask(ctx, check, ready)
	if err != nil || c.stranger == nil || k.proc.AnyListener || check.Port != k.proc.Port {
		return err
	}
	if holder, is := c.stranger(check.Port); is {
		return &PortError{Process: k.proc.Name, Port: check.Port, Holder: holder}
	}
	return nil
}

// ask makes the check. Of a process that was ready it asks the system first whether
// somebody still listens: some servers log each connection that brings no request.
func (k *keeper) ask(ctx context.Context, check Check, ready bool) error {
	if ready && check.Path == "" && k.sys.taken(check.Port) {
		return nil
	}
	return k.sys.probe(ctx, check)
}

// apply tells what one check changed.
func (k *keeper) apply(step readyStep, err error) {
	switch {
	case step.changed && err == nil:
		k.setReady(true, "", step.after)
		return
	case step.changed:
		k.setReady(false, k.proc.Name+" is not ready: "+err.Error(), step.after)
		return
	case err == nil:
		return
	}
	k.mu.Lock()
	if !k.status.Ready {
		k.status.Reason = err.Error()
	}
	k.mu.Unlock()
	if step.late {
		call(k.opts.Events.ReadyLate, ReadyLate{Process: k.proc.Name, After: step.after, Reason: err.Error()})
	}
}

// setReady notes readiness, tells of a change, and has the gate looked at.
func (k *keeper) setReady(ready bool, reason string, after time.Duration) {
	k.mu.Lock()
	changed := k.status.Ready != ready
	k.status.Ready, k.status.Reason = ready, reason
	if changed && !ready && after == 0 { // it was until it ended
		k.status.LastReady = time.Now()
	}
	k.mu.Unlock()
	if !changed {
		return
	}
	k.gate()
	if ready {
		call(k.opts.Events.Ready, Ready{Process: k.proc.Name, After: after})
	} else {
		call(k.opts.Events.NotReady, NotReady{Process: k.proc.Name, Reason: reason})
	}
}

// enter moves the process to a state; change may set more.
func (k *keeper) enter(state State, change func(*Status)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status.State, k.status.Since = state, time.Now()
	if change != nil {
		change(&k.status)
	}
}

// snapshot returns the status as it is now.
func (k *keeper) snapshot() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.status
	if s.LastExit != nil {
		last := *s.LastExit
		s.LastExit = &last
	}
	if k.out != nil {
		s.LinesDropped = k.out.lost.Load()
	}
	return s
}
