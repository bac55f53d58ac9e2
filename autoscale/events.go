package autoscale

// Events are the listeners of this package. Each may be nil. A loop calls its listeners
// in order and one at a time; a listener must return soon.
type Events struct {
	// Decided: the size changes, or it stays for another reason than before. A repeated
	// decision is reported once.
	Decided func(Decided)
	// Failed: a call failed.
	Failed func(Failed)
	// Protected: the scale-in protection of this instance was set or removed.
	Protected func(Protected)
	// Departing: this instance was chosen for termination and starts to drain.
	Departing func(Departing)
	// Departed: the drain has ended, and the lifecycle hook is completed.
	Departed func(Departed)
}

// Decided is one decision.
type Decided struct {
	Decision
	// Applied is true when the target was set; false also when nothing changes.
	Applied bool
	// NotApplied says why a change was not applied; "" when it was, or when nothing
	// changes.
	NotApplied string
}

// Failed is one call that failed.
type Failed struct {
	// Doing names the call, as in "reading the size".
	Doing string
	Err   error
	// InARow counts the consecutive failures of that call, from 1.
	InARow int
}

// Protected is a change of scale-in protection.
type Protected struct {
	On bool
}

// Departing is the start of a drain before termination.
type Departing struct{}

// Departed is the end of a drain before termination. Err is not nil when the drain
// failed, or when the hook could not be completed: the group then terminates the
// instance after the hook's timeout.
type Departed struct {
	Err error
}

func call[E any](listener func(E), event E) {
	if listener != nil {
		listener(event)
	}
}
