package supervisor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// restartRule decides what follows a failure. It is a pure function of the
// failures so far, the time and one random number.
type restartRule struct {
	min, max time.Duration
	limit    int
	window   time.Duration
}

// restartDecision is what follows one failure.
type restartDecision struct {
	// giveUp: no restart. Otherwise delay is the pause before it.
	giveUp bool
	delay  time.Duration
	// failures counts those within the window, this one included.
	failures int
}

// next takes the earlier failures, oldest first, one more at now, and a random
// number in [0, 1). It returns the failures to remember and the decision.
func (r restartRule) next(earlier []time.Time, now time.Time, random float64) ([]time.Time, restartDecision) {
	for len(earlier) > 0 && now.Sub(earlier[0]) >= r.window {
		earlier = earlier[1:]
	}
	failures := append(earlier, now)
	if more := len(failures) - r.limit - 1; more > 0 {
		// Too many are too many: what is tried for ever must not grow for ever.
		failures = failures[more:]
	}
	d := restartDecision{failures: len(failures)}
	if d.failures > r.limit {
		d.giveUp = true
		return failures, d
	}
	d.delay = r.delay(d.failures, random)
	return failures, d
}

// delay doubles from min to max. Its second half is random, so that machines
// that failed together do not come back together.
func (r restartRule) delay(failures int, random float64) time.Duration {
	base := r.min
	for i := 1; i < failures && base < r.max; i++ {
		base *= 2
	}
	half := min(base, r.max) / 2
	return max(r.min, half+time.Duration(random*float64(half)))
}

// follow decides what comes after the end of a run and waits until it is time.
// again is false when a stop came first; failure is why the process stays down
// for good.
func (l *processLoop) follow(exit Exit, life int) (failure *FailedError, again bool) {
	if l.asked != nil {
		l.forget()
		call(l.opts.Events.Restarting, Restarting{Process: l.proc.Name, Requested: true, Limit: l.rule.limit})
		return nil, true
	}
	if exit.Err == nil && l.opts.Excused != nil && l.opts.Excused(l.proc.Name, exit) {
		return nil, l.pause(Restarting{Delay: l.opts.RestartMin, Failures: len(l.failures), Excused: true})
	}
	var d restartDecision
	l.failures, d = l.rule.next(l.failures, exit.At, l.sys.random())
	l.onTrial = l.onTrial && exit.Ran < l.rule.window
	if d.giveUp || l.onTrial || life == 1 && exit.notRunnable() {
		return l.giveUp(d.failures, exit)
	}
	return nil, l.pause(Restarting{Delay: d.delay, Failures: d.failures})
}

// forget lets the process begin with a clean record.
func (l *processLoop) forget() { l.failures, l.onTrial = nil, false }

// giveUp ends the loop, or with KeepTrying waits for the next try. A try that
// fails is not given up a second time.
func (l *processLoop) giveUp(failures int, last Exit) (*FailedError, bool) {
	err := &FailedError{
		Process: l.proc.Name, Failures: failures, Window: l.rule.window, Last: last,
		KeptTrying: l.opts.KeepTrying, RetryAfter: l.opts.RetryAfter,
	}
	l.enter(Failed, func(s *Status) { s.Reason = err.Error() })
	if !l.onTrial {
		call(l.opts.Events.GaveUp, GaveUp{Process: l.proc.Name, Err: err})
	}
	if !l.opts.KeepTrying {
		return err, false
	}
	l.onTrial = true
	if l.opts.RetryAfter > 0 {
		call(l.opts.Events.Restarting, Restarting{
			Process: l.proc.Name, Delay: l.opts.RetryAfter, Failures: failures, Limit: l.rule.limit, OnTrial: true,
		})
	}
	return nil, l.await(l.opts.RetryAfter)
}

// pause waits before a restart; false means that stop came first.
func (l *processLoop) pause(event Restarting) bool {
	l.enter(Waiting, nil)
	event.Process, event.Limit = l.proc.Name, l.rule.limit
	call(l.opts.Events.Restarting, event)
	return l.await(event.Delay)
}

// await returns true after delay, or as soon as somebody asks for a start; 0
// waits for nothing else. It returns false when stop comes first.
func (l *processLoop) await(delay time.Duration) bool {
	var over <-chan time.Time
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case l.asked = <-l.restarts:
		l.forget()
		return true
	case <-l.stop:
		return false
	}
}

// Restart ends one process as a stop does (TERM, KILL after the grace) and
// starts it again at once, whatever state it is in: a process that waits or
// failed is started now, and its failures are forgotten. It returns once the
// process was started, which does not mean that it is ready, or with the reason
// why it was not, which then counts as a failure. ctx bounds the wait alone: the
// restart goes on.
func (s *Supervisor) Restart(ctx context.Context, name string) error {
	l, err := s.loopOf(name)
	if err != nil {
		return err
	}
	result := make(chan error, 1)
	select {
	case l.restarts <- result:
	case <-ctx.Done():
		return fmt.Errorf("restarting %s: %w", name, ctx.Err())
	case <-l.ended:
		return fmt.Errorf("restarting %s: it is not kept running any more", name)
	}
	select {
	case err = <-result:
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.ended:
		err = errStopping
	}
	if err != nil {
		return fmt.Errorf("restarting %s: %w", name, err)
	}
	return nil
}

func (s *Supervisor) loopOf(name string) (*processLoop, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []string
	for _, l := range s.loops {
		if l.proc.Name == name {
			return l, nil
		}
		known = append(known, l.proc.Name)
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("restarting %s: nothing was started yet", name)
	}
	return nil, fmt.Errorf("restarting %s: no process has that name: there is %s", name, strings.Join(known, ", "))
}
