package api

import (
	"errors"
	"net/http"

	"tendril/queue"
)

// Error is the error for a refused request, on both the server and the client.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
	// Code is the underlying [queue.Error]'s, [CodeSessionKey], or "".
	Code      string   `json:"code,omitempty"`
	RequestID string   `json:"request_id,omitempty"` // also appears in the log
	Details   []Detail `json:"details,omitempty"`
	// Switched, Step and Output are from the underlying [DeployError].
	Switched bool     `json:"switched,omitempty"`
	Step     string   `json:"step,omitempty"`
	Output   []string `json:"output,omitempty"`
	// Late means that a drain ended before all work was done.
	Late bool `json:"late,omitempty"`

	cause error
}

// Detail is one of several problems.
type Detail struct {
	Option string `json:"option,omitempty"`
	Text   string `json:"error"`
	Hint   string `json:"hint,omitempty"`
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is a [queue.Error] with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*queue.Error)
	return ok && t.Code != "" && t.Code == e.Code
}

// HasStatus reports whether err is an [*Error] with the status.
func HasStatus(err error, status int) bool {
	e, refused := errors.AsType[*Error](err)
	return refused && e.Status == status
}

// NewError returns an Error without a cause.
func NewError(status int, message, hint string) *Error {
	return &Error{Status: status, Message: message, Hint: hint}
}

// BadRequest returns an Error with status 400.
func BadRequest(message, hint string) *Error { return NewError(http.StatusBadRequest, message, hint) }

// Unauthorized returns an Error with status 401.
func Unauthorized(message, hint string) *Error {
	return NewError(http.StatusUnauthorized, message, hint)
}

// Forbidden returns an Error with status 403.
func Forbidden(message, hint string) *Error { return NewError(http.StatusForbidden, message, hint) }

// NotFound returns an Error with status 404.
func NotFound(message, hint string) *Error { return NewError(http.StatusNotFound, message, hint) }

// Conflict returns an Error with status 409.
func Conflict(message, hint string) *Error { return NewError(http.StatusConflict, message, hint) }
