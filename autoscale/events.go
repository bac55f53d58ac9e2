package autoscale

// Events are what this package tells. Each func may be nil. Those of one loop
// come in order and one at a time; a func must return soon.
type Events struct {
	// Decided: the size is to change, or another rule than before says that it
	// is not. A decision that stays the same is told once.
	Decided func(Decided)
	// Failed: a call was not answered, or refused.
	Failed func(Failed)
	// Protected: the protection of this instance from scale-in was set or taken
	// away.
	Protected func(Protected)
	// Departing: this instance was chosen to be terminated and begins to drain.
	Departing func(Departing)
	// Departed: it drained, and its group was told.
	Departed func(Departed)
}

// Decided is one decision.
type Decided struct {
	Decision
	// Applied tells that the target was set; false too where nothing changes.
	Applied bool
	// NotApplied says why a change was not carried out; "" where it was, or
	// where nothing changes.
	NotApplied string
}

// Failed is one call that failed.
type Failed struct {
	// Doing says what, as in "reading the size".
	Doing string
	Err   error
	// InARow counts the failures of that call since it last worked, from 1.
	InARow int
}

// Protected is a change of protection.
type Protected struct {
	On bool
}

// Departing is the begin of a drain.
type Departing struct{}

// Departed is its end. Err is not nil when the drain did not end well, or the
// group could not be told: it then terminates the instance when its own time is
// over.
type Departed struct {
	Err error
}

func call[E any](listener func(E), event E) {
	if listener != nil {
		listener(event)
	}
}
