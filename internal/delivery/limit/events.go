package limit

import "time"

// Events are the listeners of a [Limiter]. Every field may be nil. A listener runs on the goroutine that caused the
// change, without the limiter's lock, so it may call the limiter. The caller may hold other locks: a listener must
// not block or call the worker. Two changes in quick succession may be reported in reverse order.
type Events struct {
	Opened       func(Opened)     // the app fails, and deliveries stop
	HalfOpened   func(HalfOpened) // the trial starts
	Closed       func(Closed)     // the app has recovered, and deliveries start slowly
	LimitChanged func(Resized)
}

// Opened reports that the breaker opened.
type Opened struct {
	// Failures is how many of Deliveries failed, within the window or, if TrialFailed is true, as trials.
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
	Rate   float64 // maximum number of messages per second; 0 means no limit
	InWork int     // deliveries in flight; a batch counts as one
	Limit  int     // adaptive limit of deliveries in flight; 0 without one
	// SlowStart is the limit of deliveries in flight during a slow start; 0 otherwise.
	SlowStart int
	Breaker   string // "closed", "open" or "half-open"; "" without a breaker
	// Failing is the share of failed deliveries in the breaker's window, 0 to 1. It changes only with results.
	Failing float64
	TrialAt time.Time // when an open breaker allows a trial; zero in other states
	Refused Refused   // since the limiter was created
}

// Refused counts refusals of [Limiter.Acquire] by reason. One message may be refused many times.
type Refused struct {
	Breaker, Concurrency, Rate int64
}

// deferredEvents are listener calls to make after unlocking.
type deferredEvents []func()

func notify[E any](d *deferredEvents, listener func(E), event E) {
	if listener != nil {
		*d = append(*d, func() { listener(event) })
	}
}
