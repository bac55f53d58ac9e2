package limit

import "time"

// Status is what a limiter does at one moment.
type Status struct {
	// Rate is the most messages a second; 0 for no limit.
	Rate float64
	// InWork is how many deliveries are in work, a batch being one.
	InWork int
	// Limit is the adaptive limit of deliveries in work; 0 for none.
	Limit int
	// SlowStart is the most deliveries in work while the breaker's slow start
	// lasts; 0 when there is none.
	SlowStart int
	// Breaker is the breaker's state; "" for no breaker.
	Breaker State
	// Failing is the share of deliveries that failed, 0 to 1: of the breaker's
	// window, or of the trials while it is half-open. It is that of the latest
	// result: time alone does not change it.
	Failing float64
	// TrialAt is when the open breaker lets a trial begin; zero in other states.
	TrialAt time.Time
	// Refused counts the refusals since the limiter was made.
	Refused Refused
}

// Refused counts how often [Limiter.Allow] refused, by reason. One message may be
// refused many times.
type Refused struct {
	Breaker, Concurrency, Rate int64
}

// Status returns what the limiter does now.
func (l *Limiter) Status() Status {
	l.mu.Lock()
	defer l.unlockAndNotify()
	s := Status{InWork: l.deliveryList.len(), Limit: l.adaptive.limit(), Refused: l.refused}
	if l.rate != nil {
		s.Rate = l.rate.perSecond
	}
	if b := l.breaker; b != nil {
		s.Breaker, s.SlowStart, s.Failing = b.state, b.slowStartLimit, b.lib.Metrics().FailureRate()
		if b.state == StateOpen {
			s.TrialAt = b.trialAt
		}
	}
	return s
}
