package queue

import "time"

// Lease is the one row by which several instances agree on which of them is in
// charge. The zero value stands for a lease that was never written.
//
// A store replaces it by compare-and-swap on Version alone. No time of day is
// in it: who waits for the end of a lease watches one Version on its own clock
// for Duration.
type Lease struct {
	// Owner names the holder for people; it decides nothing.
	Owner string
	// Version is new in every write and never used twice; "" only in the zero
	// value.
	Version string
	// Term counts the changes of the holder, from 1. A renewal keeps it. It is
	// the fence: an effect of a leader is accepted only as long as the stored
	// lease has that leader's term and is not released.
	Term int64
	// Duration is how long this Version holds after it was last seen to be new,
	// in whole milliseconds.
	Duration time.Duration
	// Released tells that the holder gave the lease back: the next may take it
	// at once.
	Released bool
	// Data is what the holder tells the others about itself, for display; may
	// be "".
	Data string
}

// CodeStaleTerm: the effect came from an instance that is not in charge any
// more, and was refused.
const CodeStaleTerm = "StaleTerm"

// ErrStaleTerm compares by code, like the other sentinels.
var ErrStaleTerm = &Error{Code: CodeStaleTerm}
