package queue

import "time"

// Invocation is a whole answer to one call of a function: the function's own, or
// why the service did not run it.
type Invocation struct {
	// Status is the HTTP status: 200 when the function was run.
	Status int
	// FunctionError is "Handled" or "Unhandled" when the function failed; "" when
	// it returned.
	FunctionError string
	// Payload is what the function returned, or the error it failed with; nil when
	// it was not run.
	Payload []byte
	// Code names the refusal of a service that did not run the function, such as
	// TooManyRequestsException; "" when it ran, or when no name was given.
	Code string
	// Reason is one word more: the closer reason of a throttle, such as
	// ReservedFunctionConcurrentInvocationLimitExceeded, or the type of the error of a
	// function that runs here. It holds nothing else of the payloads; may be "".
	Reason string
	// Message is the service's own sentence about a refusal, for logs; may be "".
	Message string
	// RetryAfter is when the service asked to be called again; 0 when it did not.
	RetryAfter time.Duration
	// RequestID is the service's id of the call; may be "".
	RequestID string
}
