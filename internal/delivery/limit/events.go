package limit

import "time"

// Events are the listeners of a [Limiter]; each may be nil. They must not block, nor call the worker, which may hold
// its lock. Changes in quick succession may be reported out of order.
type Events struct {
	Opened       func(Opened)
	HalfOpened   func(HalfOpened)
	Closed       func(Closed) // deliveries resume with a slow start
	LimitChanged func(Resized)
}

// Opened reports that the breaker opened.
type Opened struct {
	// Failures and Deliveries are counted in the window or, if TrialFailed, among the trials.
	Failures, Deliveries int
	TrialFailed          bool
	Delay                time.Duration // until the next trial
}

// HalfOpened reports that a trial delivery started.
type HalfOpened struct{}

// Closed reports that the breaker closed.
type Closed struct {
	After time.Duration // since it opened
}

// Resized reports that the adaptive limit changed.
type Resized struct{ From, To int }

// Status is a snapshot of a limiter.
type Status struct {
	Rate   float64 // messages per second; 0 means no limit
	InWork int     // deliveries; a batch counts as one
	Limit  int     // adaptive concurrency limit; 0 if off
	// SlowStart is the slow start's concurrency limit, otherwise 0.
	SlowStart int
	Breaker   string // "closed", "open" or "half-open", or ""
	// Failing is the share of failed deliveries in the breaker's window, 0 to 1.
	Failing float64
	TrialAt time.Time // zero unless open
	Refused Refused   // since the limiter was created
}

// Refused counts refusals by reason. A message can be refused many times.
type Refused struct {
	Breaker, Concurrency, Rate int64
}

type deferredEvents []func()

func notify[E any](d *deferredEvents, listener func(E), event E) {
	if listener != nil {
		*d = append(*d, func() { listener(event) })
	}
}
