package limit

import "time"

// Status is a snapshot of a limiter.
type Status struct {
	// Rate is the maximum number of messages per second; 0 for no limit.
	Rate float64
	// InWork is the number of deliveries in work; a batch counts as one.
	InWork int
	// Limit is the adaptive limit of deliveries in work; 0 for none.
	Limit int
	// SlowStart is the limit of deliveries in work during the breaker's slow start;
	// 0 at other times.
	SlowStart int
	// Breaker is the breaker's state: "closed", "open" or "half-open"; "" without a
	// breaker.
	Breaker string
	// Failing is the share of deliveries that failed within the breaker's window, 0
	// to 1. It changes with results only, not as time passes.
	Failing float64
	// TrialAt is when the open breaker lets a trial start; zero in other states.
	TrialAt time.Time
	// Refused counts the refusals since the limiter was made.
	Refused Refused
}

// Refused counts how often [Limiter.Acquire] refused, by reason. One message may be
// refused many times.
type Refused struct {
	Breaker, Concurrency, Rate int64
}

// Status returns the current state.
func (l *Limiter) Status() Status {
	l.mu.Lock()
	defer l.unlockAndNotify()
	s := Status{InWork: l.inWork, Limit: l.adaptive.limit(), Refused: l.refused}
	if l.rate != nil {
		s.Rate = l.rate.perSecond
	}
	if b := l.breaker; b != nil {
		s.Breaker, s.SlowStart, s.Failing = b.state, b.slowStartLimit, b.lib.Metrics().FailureRate()
		if b.state == stateOpen {
			s.TrialAt = b.trialAt
		}
	}
	return s
}
