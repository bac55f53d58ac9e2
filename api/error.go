package api

import (
	"tendril/queue"
)

// Error is a refusal by the console, on both ends of the wire.
type Error struct {
	// Status is the HTTP status.
	Status int `json:"-"`
	// Message says what is wrong and where; Hint what to do instead, "" when
	// there is nothing to say.
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
	// Code is the code of the [queue.Error] behind it; "" when it was not a
	// queue that refused.
	Code string `json:"code,omitempty"`
	// RequestID is that of the request, as in the header [RequestIDHeader] and in the log.
	RequestID string `json:"request_id,omitempty"`
	// Details are the single things that are wrong, where Message sums up.
	Details []Detail `json:"details,omitempty"`
	// Switched, Step and Output are those of the [DeployError] behind it.
	Switched bool     `json:"switched,omitempty"`
	Step     string   `json:"step,omitempty"`
	Output   []string `json:"output,omitempty"`
	// Late tells of a drain that it is over, and that work was cut off.
	Late bool `json:"late,omitempty"`

	cause error
}

// Detail is one of several things that are wrong.
type Detail struct {
	// Option is the option that it is about, as the request names it; "" for none.
	Option string `json:"option,omitempty"`
	// Text says what and where, Hint what to do instead; Hint may be "".
	Text string `json:"error"`
	Hint string `json:"hint,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause where the client itself found the trouble.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is a [queue.Error] of the same code, so that a
// caller of [Client] may ask errors.Is(err, queue.ErrNoQueue).
func (e *Error) Is(target error) bool {
	t, ok := target.(*queue.Error)
	return ok && t.Code != "" && t.Code == e.Code
}

// NewError returns a refusal: message says what is wrong and where, hint what to do instead.
func NewError(status int, message, hint string) *Error {
	return &Error{Status: status, Message: message, Hint: hint}
}
