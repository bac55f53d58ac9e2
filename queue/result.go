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
	switch o {
	case Done:
		return "done"
	case Unreached:
		return "unreached"
	case Throttled:
		return "throttled"
	case Postponed:
		return "postponed"
	default:
		return "failed"
	}
}

// Result is the result of one delivery.
type Result struct {
	Outcome Outcome
	// Status is the HTTP status; 0 when there was no answer.
	Status int
	// Reason says in a few words why the delivery is not done ("status 500", "no
	// answer within 3m0s", "connection refused"); "" when done. It never contains a part
	// of the message or of the answer's body.
	Reason string
	// Answer is the start of an HTTP answer that is not a success: one line of printable
	// text, bounded; "" for none. It can contain anything that the app says, so only
	// its operators see it.
	Answer string
	// Err is the cause of Reason, for logs; nil when the app answered.
	Err error
	// Duration is the time from the first dial to the end of the answer.
	Duration time.Duration
	// RetryAfter is the time of the app's Retry-After header; 0 without one.
	RetryAfter time.Duration
	// Unsent: the delivery Failed before the app got any part of the message, because
	// of the message itself (an invalid path, a body that cannot be fetched or is too
	// large). It says nothing about the app.
	Unsent bool
	// Fault: the app itself failed although Status does not say so: a function ended
	// with an error or was stopped at its time limit. It corresponds to status 500 of an
	// app over HTTP.
	Fault bool
}
