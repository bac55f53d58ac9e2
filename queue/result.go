package queue

import "time"

// Outcome says how one delivery ended.
type Outcome int

// The outcomes of a delivery. The zero value is Failed, so that a message counts as
// done only if a delivery says so.
const (
	// Failed: the app did not answer with success, or may have seen the message
	// without answering.
	Failed Outcome = iota
	// Done: the complete success answer for this receive was read.
	Done
	// Unreached: no part of the message was sent (connection refused, failed DNS
	// lookup, connect timeout). It says nothing about the message.
	Unreached
	// Throttled: the target accepts nothing for now and did not process the message.
	// It does not count as an attempt and says nothing about the message: deliveries
	// slow down, and the message is retried after RetryAfter.
	Throttled
	// Postponed: no delivery was tried, and nothing is wrong with the target or the
	// message. The worker keeps the message invisible and tries again after
	// RetryAfter. It does not count as an attempt, and other messages continue.
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

// Instruction is what the app, or one of the terminal statuses, asks to be done with a message after a delivery.
type Instruction uint8

// The instructions. The zero value leaves it to the outcome.
const (
	NoInstruction Instruction = iota
	// Retry: the app wants the message again when RetryAfter is over, whatever the settings say.
	Retry
	// Drop: the app wants the message deleted, whatever its status says. The outcome is Done.
	Drop
	// DeadLetterNow: the app wants the message in the dead-letter queue, without further attempts.
	DeadLetterNow
	// TerminalStatus: the settings want a message with this status in the dead-letter queue.
	TerminalStatus
)

// DeadLetters reports whether the message is to go to the dead-letter queue now.
func (i Instruction) DeadLetters() bool { return i == DeadLetterNow || i == TerminalStatus }

// Result is the result of one delivery.
type Result struct {
	Outcome Outcome
	// Status is the HTTP status; 0 when there was no answer.
	Status int
	// Reason says in a few words why the delivery is not done ("status 500", "no
	// answer within 3m0s", "connection refused"); "" when done. It never contains a part
	// of the message or of the answer's body.
	Reason string
	// Answer is the start of an answer that is not a success, or the message of a function's
	// error: one line of printable text, bounded; "" for none. It can contain anything that the
	// app says, so only its operators see it.
	Answer string
	// Excerpt is up to 1 KiB of that answer as it was sent, where it is text that says more than Answer.
	Excerpt string
	// Process is the process of the app that was asked, where replicas of it run here.
	Process    string
	Err        error         // the cause of Reason, for logs; nil when the app answered
	Duration   time.Duration // from the first dial to the end of the answer
	RetryAfter time.Duration // of the app's Retry-After header, or of its instruction; 0 without one
	// Instruction overrides what the worker would do by the outcome.
	Instruction Instruction
	// Unsent: the delivery Failed before the app got any part of the message, because
	// of the message itself (an invalid path, a body that cannot be fetched or is too
	// large). It says nothing about the app.
	Unsent bool
	// Fault: the app itself failed although Status does not say so: a function ended
	// with an error or was stopped at its time limit. It corresponds to status 500 of an
	// app over HTTP.
	Fault bool
}

// Invocation is a whole answer to one call of a function: the function's own, or
// why the service did not run it.
type Invocation struct {
	Status int // HTTP's: 200 when the function was run
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
	Reason     string
	Message    string        // the service's own sentence about a refusal, for logs; may be ""
	RetryAfter time.Duration // when the service asked to be called again; 0 when it did not
	RequestID  string        // the service's id of the call; may be ""
}
