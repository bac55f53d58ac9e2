package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"

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

func refuse(status int, message, hint string) *Error {
	return &Error{Status: status, Message: message, Hint: hint}
}

// asRefusal turns any error of a handler into what the caller is told.
func asRefusal(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var refused *queue.Error
	if errors.As(err, &refused) {
		return &Error{Status: cmp.Or(statuses[refused.Code], http.StatusBadRequest), Message: err.Error(),
			Hint: hints[refused.Code], Code: refused.Code}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return refuse(http.StatusServiceUnavailable, "the request was canceled before it was answered", "")
	}
	return refuse(http.StatusInternalServerError, err.Error(), "")
}

// statuses are those of refusals by a queue, by their code; others are 400.
var statuses = map[string]int{
	queue.CodeQueueDoesNotExist:    http.StatusNotFound,
	queue.CodeResourceNotFound:     http.StatusNotFound,
	queue.CodePurgeQueueInProgress: http.StatusConflict,
	queue.CodeQueueNameExists:      http.StatusConflict,
	queue.CodeQueueDeletedRecently: http.StatusConflict,
	queue.CodeUnsupportedOperation: http.StatusConflict,
	queue.CodeOverLimit:            http.StatusTooManyRequests,
	queue.CodeRequestThrottled:     http.StatusTooManyRequests,
	queue.CodeAccessDenied:         http.StatusForbidden,
	queue.CodeUnreachable:          http.StatusBadGateway,
	queue.CodeStorageFull:          http.StatusInsufficientStorage,
	queue.CodeStorageFailed:        http.StatusServiceUnavailable,
	queue.CodeClosed:               http.StatusServiceUnavailable,
}

// hints are what to do about some of them.
var hints = map[string]string{
	queue.CodeQueueDoesNotExist:    "GET /api/v1/queues lists the queues that exist",
	queue.CodePurgeQueueInProgress: "wait a minute after a purge before the next one",
}

// conflict turns the plain error of an environment that cannot do an act into a
// refusal that is not the console's fault.
func conflict(err error) error {
	var own *Error
	var refused *queue.Error
	if err == nil || errors.As(err, &own) || errors.As(err, &refused) {
		return err
	}
	return refuse(http.StatusConflict, err.Error(), "GET /api/v1/status shows which queue the environment works on")
}
