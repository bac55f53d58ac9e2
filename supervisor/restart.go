package supervisor

import "time"

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
