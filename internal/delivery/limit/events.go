package limit

import "time"

// Events are the listeners of a [Limiter]. Every field may be nil. A listener runs
// on the goroutine whose call caused the change, without the limiter's lock, so it
// may call the limiter. The caller may hold locks of its own: a listener must not
// block and must not call the worker. Two changes in quick succession may be reported
// in the opposite order.
type Events struct {
	Opened       func(Opened)     // the app fails, and deliveries stop
	HalfOpened   func(HalfOpened) // the trial starts
	Closed       func(Closed)     // the app has recovered, and deliveries start slowly
	LimitChanged func(Resized)    // the adaptive limit has changed
}

// Opened reports that the breaker opened.
type Opened struct {
	// Failures is how many of Deliveries failed, within the window or, when
	// TrialFailed is true, as trials.
	Failures, Deliveries int
	TrialFailed          bool          // the breaker was half-open
	Delay                time.Duration // until the next trial
}

// HalfOpened reports that one delivery tests whether the app has recovered.
type HalfOpened struct{}

// Closed reports that the breaker closed after it had been open.
type Closed struct {
	After time.Duration // since it opened
}

// Resized reports that the adaptive limit changed.
type Resized struct{ From, To int }

// Status is a snapshot of a limiter.
type Status struct {
	Rate   float64 // the maximum number of messages per second; 0 for no limit
	InWork int     // deliveries in work; a batch counts as one
	Limit  int     // the adaptive limit of deliveries in work; 0 for none
	// SlowStart is the limit of deliveries in work during the breaker's slow start;
	// 0 at other times.
	SlowStart int
	Breaker   string // "closed", "open" or "half-open"; "" without a breaker
	// Failing is the share of deliveries that failed within the breaker's window, 0
	// to 1. It changes with results only, not as time passes.
	Failing float64
	TrialAt time.Time // when the open breaker lets a trial start; zero in other states
	Refused Refused   // since the limiter was made
}

// Refused counts how often [Limiter.Acquire] refused, by reason. One message may be
// refused many times.
type Refused struct {
	Breaker, Concurrency, Rate int64
}

// deferredEvents are calls of listeners that wait until the limiter's lock is released.
type deferredEvents []func()

// notify keeps a call of a listener, if there is one.
func notify[E any](d *deferredEvents, listener func(E), event E) {
	if listener != nil {
		*d = append(*d, func() { listener(event) })
	}
}
