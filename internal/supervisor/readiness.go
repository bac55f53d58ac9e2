package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// One failed check may be due to a full accept queue.
	unhealthyAfter  = 2
	recheckInterval = time.Second
	startupPeriod   = 10 * time.Second
)

type readiness struct {
	ready     bool
	failed    int
	since     time.Time
	lateAfter time.Duration
}

type readyStep struct {
	changed, late bool
	after         time.Duration
	wait          time.Duration
}

func (r *readiness) next(passed bool, now time.Time, o *Options) readyStep {
	step := readyStep{after: now.Sub(r.since)}
	switch {
	case passed:
		step.changed = !r.ready
		r.ready = true
		r.failed = 0
		r.since = now
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
	if step.after >= startupPeriod {
		step.wait = max(step.wait, recheckInterval)
	}
	return step
}

// stop waits for a check in progress.
func (l *processLoop) beginProbing(c *child) (stop func()) {
	check := l.proc.check()
	if check.IsZero() {
		l.becomeReady(0)
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.probeUntil(ctx, check, c)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (l *processLoop) probeUntil(ctx context.Context, check Check, c *child) {
	state := readiness{since: time.Now(), lateAfter: l.opts.ReadyLateAfter}
	timer := time.NewTimer(0)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}

		err := l.probe(ctx, check, c, state.ready)
		if ctx.Err() != nil {
			return
		}

		if err == nil {
			l.update(func(s *Status) { s.LastReady = time.Now() })
		}

		step := state.next(err == nil, time.Now(), l.opts)
		timer.Reset(step.wait)
		l.applyStep(step, err)
	}
}

func (l *processLoop) probe(ctx context.Context, check Check, c *child, ready bool) error {
	err := l.runCheck(ctx, check, ready)
	switch {
	case check.Port != l.proc.Port:
		return err
	case errors.Is(err, errNothingListens):
		return listensElsewhere(err, c.ports())
	case err != nil:
		return err
	}
	if holder, is := c.foreignListener(check.Port); is {
		return &PortError{Process: l.proc.Name, Port: check.Port, Holder: holder}
	}
	return nil
}

func listensElsewhere(err error, ports []int) error {
	switch len(ports) {
	case 0:
		return err
	case 1:
		return fmt.Errorf("%w; it listens on %d: use $PORT or --port %[2]d", err, ports[0])
	default:
		all := strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ", "), "[]")
		return fmt.Errorf("%w; it listens on %s: use $PORT, or --port with the right one", err, all)
	}
}

// runCheck skips a TCP check if the process is ready and its port has a listener, because some servers log connections
// without requests.
func (l *processLoop) runCheck(ctx context.Context, check Check, ready bool) error {
	if ready && check.Path == "" && l.sys.taken(check.Port) {
		return nil
	}
	return l.sys.probe(ctx, check)
}

func (l *processLoop) applyStep(step readyStep, err error) {
	switch {
	case step.changed && err == nil:
		l.becomeReady(step.after)
		return
	case step.changed:
		l.becomeUnready(l.proc.Name + " is not ready: " + err.Error())
		return
	case err == nil:
		return
	}

	l.update(func(s *Status) {
		if !s.Ready {
			s.Reason = err.Error()
		}
	})
	if step.late {
		callIfSet(l.opts.Events.ReadyLate, ReadyLate{Process: l.proc.Name, After: step.after, Reason: err.Error()})
	}
}

func (l *processLoop) becomeReady(after time.Duration) {
	if l.changeReady(true, "") {
		callIfSet(l.opts.Events.Ready, Ready{Process: l.proc.Name, After: after}) // before the gate opens, which ends startup
		l.gate()
	}
}

func (l *processLoop) becomeUnready(reason string) {
	if l.changeReady(false, reason) {
		l.gate()
		callIfSet(l.opts.Events.NotReady, NotReady{Process: l.proc.Name, Reason: reason})
	}
}

func (l *processLoop) changeReady(ready bool, reason string) (changed bool) {
	l.update(func(s *Status) {
		changed = s.Ready != ready
		s.Ready, s.Reason = ready, reason
	})
	return changed
}
