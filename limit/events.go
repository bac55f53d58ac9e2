package limit

import (
	"fmt"
	"time"
)

// Events are a limiter's listeners. Every field may be nil. They are called
// without the limiter's lock held, so they may ask it, from the goroutine whose
// call brought the change about, which may hold locks of its own: a listener must
// neither block nor call the worker. Two changes that follow each other closely
// may be told in the other order.
type Events struct {
	// Opened: the app fails, and deliveries stop.
	Opened func(Opened)
	// HalfOpened: the first trial begins.
	HalfOpened func(HalfOpened)
	// Closed: the app is well again, and deliveries begin slowly.
	Closed func(Closed)
	// LimitChanged: the adaptive limit is another now.
	LimitChanged func(LimitChanged)
}

// Opened tells that the breaker opened.
type Opened struct {
	// Failures is how many of Deliveries failed, within the window or, when Again
	// is true, among the trials.
	Failures, Deliveries int
	// Again is true when a trial failed.
	Again bool
	// Delay is the time until the next trial.
	Delay time.Duration
}

// String returns the event in one line.
func (o Opened) String() string {
	if o.Again {
		return fmt.Sprintf("breaker open: a trial failed, next in %s", o.Delay)
	}
	return fmt.Sprintf("breaker open: %d of %d deliveries failed, trial in %s", o.Failures, o.Deliveries, o.Delay)
}

// HalfOpened tells that the breaker lets deliveries try the app out.
type HalfOpened struct {
	// Trials is how many may begin at once.
	Trials int
}

// String returns the event in one line.
func (h HalfOpened) String() string { return fmt.Sprintf("breaker half-open: trials %d", h.Trials) }

// Closed tells that the breaker closed after it had been open.
type Closed struct {
	// After is the time since it opened.
	After time.Duration
}

// String returns the event in one line.
func (c Closed) String() string { return fmt.Sprintf("breaker closed after %s", c.After) }

// LimitChanged tells that the adaptive limit changed.
type LimitChanged struct {
	From, To int
}

// String returns the event in one line.
func (l LimitChanged) String() string { return fmt.Sprintf("concurrency %d, was %d", l.To, l.From) }

// call calls the listener for an event, if there is one.
func (e *Events) call(event any) {
	switch event := event.(type) {
	case Opened:
		if e.Opened != nil {
			e.Opened(event)
		}
	case HalfOpened:
		if e.HalfOpened != nil {
			e.HalfOpened(event)
		}
	case Closed:
		if e.Closed != nil {
			e.Closed(event)
		}
	case LimitChanged:
		if e.LimitChanged != nil {
			e.LimitChanged(event)
		}
	}
}
