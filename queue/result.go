package queue

import "time"

// Outcome is the outcome of one delivery.
type Outcome int

// Failed is the zero value, so that Done must be set explicitly.
const (
	// Failed means that the app did not report success, or may have received the message without responding.
	Failed Outcome = iota
	// Done means that the app's complete success response was read.
	Done
	// Unreached means that no part of the message was sent (connection refused, failed DNS lookup, connect timeout).
	Unreached
	// Throttled means that the target's rate limit rejected the message. This is not an attempt: deliveries slow
	// down, and the message is retried after RetryAfter.
	Throttled
	// Postponed means that no delivery was attempted, although nothing is wrong with the target or the message. This
	// is not an attempt: the message stays invisible for RetryAfter.
	Postponed
)

// String returns the outcome in lower case, such as "done".
func (o Outcome) String() string {
	names := [...]string{"failed", "done", "unreached", "throttled", "postponed"}
	if o < 0 || int(o) >= len(names) {
		return names[Failed]
	}
	return names[o]
}

// Instruction is an action for a message that the app or a setting requests after its delivery.
type Instruction uint8

// The instructions of a delivery.
const (
	NoInstruction Instruction = iota
	// Retry means that the app wants the message again after RetryAfter, regardless of settings.
	Retry
	// Drop means that the app wants the message deleted, whatever the HTTP status. The outcome is Done.
	Drop
	// DeadLetterNow means that the app wants no further attempts.
	DeadLetterNow
	// TerminalStatus means that the settings dead-letter this HTTP status.
	TerminalStatus
)

// DeadLetters reports whether i dead-letters the message.
func (i Instruction) DeadLetters() bool { return i == DeadLetterNow || i == TerminalStatus }

// Result is the result of one delivery.
type Result struct {
	Outcome Outcome
	// Status is the HTTP status; 0 without a response.
	Status int
	// Reason briefly describes the failure ("HTTP 500", "no response within 3m0s", "connection refused"); "" if done.
	// It reveals no parts of the message or response.
	Reason string
	// Answer is the start of an unsuccessful response, or a function's error message: one line of printable text, or
	// "". It can contain anything, so only operators see it.
	Answer string
	// Excerpt is up to 1 KiB of an unsuccessful text response, unchanged, if longer than Answer.
	Excerpt string
	// Process names the called app process, if tendril started it; otherwise "".
	Process    string
	Err        error         // error behind Reason, for logs; nil if the app responded
	Duration   time.Duration // from dialing to the end of the response
	RetryAfter time.Duration // from Retry-After or the app's instruction; 0 if absent
	// Instruction overrides the default action for the outcome.
	Instruction Instruction
	// Unsent means that the delivery failed before any part of the message was sent, because of the message itself
	// (an invalid path, or a body that cannot be fetched or is too large).
	Unsent bool
	// Fault means that a function returned an error or exceeded its time limit, which Status does not show. It is
	// treated like HTTP status 500.
	Fault bool
}

// Invocation is the complete response to a function call, from the function or a service that did not run it.
type Invocation struct {
	Status int // HTTP status; 200 if the function ran
	// FunctionError is "Handled" or "Unhandled" if the function failed, otherwise "".
	FunctionError string
	// Payload is the function's result or error; nil if it did not run.
	Payload []byte
	// Code is the service's error code if the function did not run, such as TooManyRequestsException, or "".
	Code string
	// Reason is more specific than Code, such as ReservedFunctionConcurrentInvocationLimitExceeded, or the error type
	// of a local function, or "". It reveals no other part of the payloads.
	Reason     string
	Message    string        // message of the service, for logs; may be ""
	RetryAfter time.Duration // time to wait before a retry; 0 if absent
	RequestID  string        // request ID of the service; may be ""
}
