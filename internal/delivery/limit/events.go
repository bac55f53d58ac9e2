package limit

import "time"

// Events are the listeners of a [Limiter]. Every field may be nil. A listener may call the limiter, but must neither
// block nor call the worker, which may hold its lock. Changes in quick succession may be reported in reverse order.
type Events struct {
	Opened       func(Opened)     // the app fails, and deliveries stop
	HalfOpened   func(HalfOpened) // the trial starts
	Closed       func(Closed)     // the app has recovered, and deliveries start slowly
	LimitChanged func(Resized)
}

// Opened reports that the breaker opened.
type Opened struct {
	// Failures is how many of Deliveries failed: within the window, or as trials if TrialFailed is true.
	Failures, Deliveries int
	TrialFailed          bool          // the breaker was half-open
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
	InWork int     // deliveries in flight; a batch counts as one
	Limit  int     // adaptive limit of deliveries; 0 without one
	// SlowStart is the limit of deliveries during a slow start, otherwise 0.
	SlowStart int
	Breaker   string // "closed", "open" or "half-open"; "" without a breaker
	// Failing is the share of failures in the breaker's window, 0 to 1, as of the last result.
	Failing float64
	TrialAt time.Time // zero unless the breaker is open
	Refused Refused   // since the limiter was created
}

// Refused counts refusals by reason. One message may be refused many times.
type Refused struct {
	Breaker, Concurrency, Rate int64
}

type deferredEvents []func()

func notify[E any](d *deferredEvents, listener func(E), event E) {
	if listener != nil {
		*d = append(*d, func() { listener(event) })
	}
}
