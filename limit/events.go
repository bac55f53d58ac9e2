package limit

import "time"

// Events are the listeners of a [Limiter]. Every field may be nil. A listener runs
// on the goroutine whose call caused the change, without the limiter's lock, so it
// may call the limiter. The caller may hold locks of its own: a listener must not
// block and must not call the worker. Two changes in quick succession may be reported
// in the opposite order.
type Events struct {
	// Opened: the app fails, and deliveries stop.
	Opened func(Opened)
	// HalfOpened: the trial starts.
	HalfOpened func(HalfOpened)
	// Closed: the app has recovered, and deliveries start slowly.
	Closed func(Closed)
	// LimitChanged: the adaptive limit has changed.
	LimitChanged func(LimitChanged)
}

// Opened reports that the breaker opened.
type Opened struct {
	// Failures is how many of Deliveries failed, within the window or, when
	// TrialFailed is true, as trials.
	Failures, Deliveries int
	// TrialFailed is true when the breaker was half-open.
	TrialFailed bool
	// Delay is the time until the next trial.
	Delay time.Duration
}

// HalfOpened reports that one delivery tests whether the app has recovered.
type HalfOpened struct{}

// Closed reports that the breaker closed after it had been open.
type Closed struct {
	// After is the time since it opened.
	After time.Duration
}

// LimitChanged reports that the adaptive limit changed.
type LimitChanged struct {
	From, To int
}

// deferredEvents are calls of listeners that wait until the limiter's lock is released.
type deferredEvents []func()

// notify keeps a call of a listener, if there is one.
func notify[E any](d *deferredEvents, listener func(E), event E) {
	if listener != nil {
		*d = append(*d, func() { listener(event) })
	}
}
