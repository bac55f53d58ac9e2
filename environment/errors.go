package environment

import (
	"context"
	"errors"
	"fmt"
)

// Errors that tell the command how an environment ended.
var (
	// ErrAppFailed: the app failed too often, or was not ready in time.
	ErrAppFailed = errors.New("the app does not run")
	// ErrLate: the drain took longer than the shutdown timeout; what was in
	// flight goes back to the queue.
	ErrLate = errors.New("the stop took longer than the shutdown timeout")
	// ErrCutShort: as ErrLate, but since somebody asked for a stop at once.
	ErrCutShort = errors.New("the stop was cut short on request")
	// ErrQueue: the queue cannot be used: there is none, no access, no answer.
	ErrQueue = errors.New("the queue cannot be used")
	// ErrSettings: a setting, or a variable of another system, is wrong.
	ErrSettings = errors.New("the settings are wrong")
	// ErrTarget: what messages are handed to cannot be used.
	ErrTarget = errors.New("the function cannot be used")
	// ErrConflict: a port, or the data directory, is in use. The error's text
	// says which; this one is only for errors.Is.
	ErrConflict = errors.New("in use")
)

// cutBy says why a stop that ctx bounds cut work off.
func cutBy(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrCutShort) {
		return ErrCutShort
	}
	return ErrLate
}

// conflict marks an error as an [ErrConflict] without changing its text.
func conflict(err error) error { return &conflictError{err} }

// portConflict is the conflict of the app's port.
func portConflict(err error) error { return conflict(fmt.Errorf("%w with --port", err)) }

type conflictError struct{ err error }

func (e *conflictError) Error() string { return e.err.Error() }

func (e *conflictError) Unwrap() []error { return []error{ErrConflict, e.err} }
