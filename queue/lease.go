package queue

import "time"

// Lease is the single row by which several instances agree on the leader. The zero
// value stands for a lease that was never written.
//
// A store replaces it by compare-and-swap on Version alone. It contains no time of
// day: an instance that waits for the end of a lease watches for Duration, on its own
// clock, whether Version changes.
type Lease struct {
	// Owner names the holder for display only.
	Owner string
	// Version is different in every write and never used twice; "" only in the zero
	// value.
	Version string
	// Term counts the changes of the holder, from 1. A renewal keeps it. It is a
	// fencing token: a write of a leader is accepted only while the stored lease has
	// that leader's term and is not released.
	Term int64
	// Duration is how long this Version is valid after an instance first saw it, in
	// whole milliseconds.
	Duration time.Duration
	// Released is true after the holder gave the lease up: another instance may
	// acquire it at once.
	Released bool
	// Data is information of the holder about itself, for display; may be "".
	Data string
}

// CodeStaleTerm: the write came from an instance that is no longer the leader, and
// was rejected.
const CodeStaleTerm = "StaleTerm"

// ErrStaleTerm is for errors.Is, which compares the code alone.
var ErrStaleTerm = &Error{Code: CodeStaleTerm}
