package queue

import "time"

// Outcome is the outcome of one delivery.
type Outcome int

// The outcomes of a delivery. The zero value is Failed, so that Done must be set explicitly.
const (
	// Failed: the app did not report success, or may have received the message without responding.
	Failed Outcome = iota
	// Done: the app's complete success response was read.
	Done
	// Unreached: no part of the message was sent (connection refused, failed DNS lookup, connect timeout).
	Unreached
	// Throttled: the target rejected the message because of its rate limit, without processing it. This does not
	// count as an attempt: deliveries slow down, and the message is retried after RetryAfter.
	Throttled
	// Postponed: no delivery was attempted, although neither the target nor the message has a problem. This does not
	// count as an attempt. The worker keeps the message invisible for RetryAfter; other messages continue.
	Postponed
)

// String returns "failed", "done", "unreached", "throttled" or "postponed".
func (o Outcome) String() string {
	names := [...]string{"failed", "done", "unreached", "throttled", "postponed"}
	if o < 0 || int(o) >= len(names) {
		return names[Failed]
	}
	return names[o]
}

// Instruction is a request by the app, or a rule in the settings, about what to do with a message after its delivery.
type Instruction uint8

// The instructions that a delivery can result in.
const (
	NoInstruction Instruction = iota
	// Retry: the app wants the message again after RetryAfter, regardless of settings.
	Retry
	// Drop: the app wants the message deleted, whatever the HTTP status. The outcome is Done.
	Drop
	// DeadLetterNow: the app wants the message dead-lettered without further attempts.
	DeadLetterNow
	// TerminalStatus: the settings say that messages with this HTTP status are dead-lettered.
	TerminalStatus
)

// DeadLetters reports whether the instruction is to dead-letter the message now.
func (i Instruction) DeadLetters() bool { return i == DeadLetterNow || i == TerminalStatus }

// Result is the result of one delivery.
type Result struct {
	Outcome Outcome
	// Status is of HTTP; 0 without a response.
	Status int
	// Reason briefly describes the failure ("HTTP 500", "no answer within 3m0s", "connection refused"); "" if done.
	// It never contains parts of the message or response.
	Reason string
	// Answer is the start of an unsuccessful response, or a function's error message: one line of printable text,
	// truncated; may be "". Since it may contain anything, only operators see it.
	Answer string
	// Excerpt is up to 1 KiB of that response, unchanged, if it is text and longer than Answer.
	Excerpt string
	// Process names the app process that was called, if tendril runs the replicas.
	Process    string
	Err        error         // of Reason, for logs; nil if the app responded
	Duration   time.Duration // from dialing to the end of the response
	RetryAfter time.Duration // from Retry-After or the app's instruction; 0 if absent
	// Instruction overrides the default action for the outcome.
	Instruction Instruction
	// Unsent: the delivery failed before any part of the message was sent, because of the message itself (an invalid
	// path, or a body that cannot be fetched or is too large).
	Unsent bool
	// Fault: a function returned an error or exceeded its time limit, although Status does not show this. It is
	// treated like HTTP status 500.
	Fault bool
}

// Invocation is the complete response to a function call, from the function itself or from a service that did not run
// it.
type Invocation struct {
	Status int // of HTTP; 200 if the function ran
	// FunctionError is "Handled" or "Unhandled" if the function failed, else "".
	FunctionError string
	// Payload is the function's result or error; nil if the function did not run.
	Payload []byte
	// Code is the service's error code if the function did not run, such as TooManyRequestsException; may be "".
	Code string
	// Reason is more specific than Code, such as ReservedFunctionConcurrentInvocationLimitExceeded. For a local
	// function it is the error type. It may be "", and contains no other part of the payloads.
	Reason     string
	Message    string        // of the service, for logs; may be ""
	RetryAfter time.Duration // time to wait before a retry, if the service returned one
	RequestID  string        // of the service; may be ""
}
