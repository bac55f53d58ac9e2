package supervisor

import "time"

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
