package queue

import "time"

// Outcome says how one delivery ended.
type Outcome int

// The outcomes of a delivery. The zero value is Failed: what nobody vouched
// for is not done.
const (
	// Failed: the app answered something else than success, or may have seen
	// the message without answering.
	Failed Outcome = iota
	// Done: the complete success answer for this very receive was read.
	Done
	// Unreached: nothing of the message was put on the wire (refused
	// connection, failed name look-up, connect timeout). It is not the app's
	// judgement of the message.
	Unreached
	// Throttled: the target refused to take anything for now, without running
	// it. It is no attempt, and no judgement of the message: deliveries slow
	// down, and the message comes again after RetryAfter.
	Throttled
	// Postponed: nothing was tried, and nothing is wrong with the target or the
	// message. The worker keeps the message hidden and asks again after
	// RetryAfter; it is no attempt, and others go on meanwhile.
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

// Result is what became of one delivery.
type Result struct {
	Outcome Outcome
	// Status is the HTTP status; 0 when there was no answer.
	Status int
	// Reason says in a few words why the delivery is not done ("status 500",
	// "no answer within 3m0s", "connection refused"); "" when done. It never
	// holds a part of the message or of the answer's body.
	Reason string
	// Err is the cause below Reason, for logs; nil when the app answered.
	Err error
	// Duration is the time from the first dial to the end of the answer.
	Duration time.Duration
	// RetryAfter is what the app's Retry-After asked for; 0 when it did not.
	RetryAfter time.Duration
	// Unsent: the delivery failed without the app having been given any of the
	// message, for a reason that lies in the message or on the way to it (a path
	// that is refused, a body that cannot be had or is too large). It says nothing
	// about the app. Only of what is Failed.
	Unsent bool
	// Fault: the app failed as a whole, although its status does not say so: a
	// function ended with an error, or was stopped at its time limit. It is what an
	// answer of 500 is for an app over HTTP.
	Fault bool
}
