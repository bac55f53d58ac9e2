package worker

import (
	"time"

	"tendril/queue"
)

// Events are the listeners of a worker. Every field may be nil. Listeners run without locks held and must be safe for
// concurrent use.
type Events struct {
	// Received is called for each answered receive, even an empty one.
	Received func(Received)
	// PollFailed is called for each failed receive.
	PollFailed func(PollFailed)
	// Duplicate is called when a message that is already held or done is received again.
	Duplicate func(Duplicate)
	// Settled is called after each delivery that attempted its message.
	Settled func(Settled)
	// Postponed is called instead of Settled if no attempt was made, or if a throttled message is kept.
	Postponed func(Postponed)
	// DeadLettered is called for each message sent to the dead-letter queue, successfully or not.
	DeadLettered func(DeadLettered)
	// Deleted is called after each queue call that deleted messages.
	Deleted func(Deleted)
	// DeleteFailed is called after each failed delete.
	DeleteFailed func(DeleteFailed)
	// Extended is called after each queue call that extended visibility timeouts.
	Extended func(Extended)
	// ChangeFailed is called after each failed visibility change.
	ChangeFailed func(ChangeFailed)
	// Returned is called after each queue call that returned unposted messages.
	Returned func(Returned)
	// VisibilityExpired is called when the visibility timeout of a held message expires.
	VisibilityExpired func(VisibilityExpired)
	// Expired is called for each message deleted without being posted because it is past its retention.
	Expired func(Expired)
	// Filtered is called for each message deleted without being posted because the filter did not match it.
	Filtered func(Filtered)
	// GateChanged is called when receiving stops or resumes, or when the reasons for not receiving change.
	GateChanged func(GateChanged)
	// Throttled is called when the target requests a pause or extends one.
	Throttled func(Throttled)
	// Limited is called at the start and end of each limited period.
	Limited func(Limited)
	// Stalled is called after a period in which the process did not run because it was stopped by a signal, suspended
	// or starved of CPU time.
	Stalled func(Stalled)
}

// Received is one receive call that the queue answered.
type Received struct {
	Messages int
	// LongestWait and TotalWait are the maximum and the sum of the times since the messages were sent.
	LongestWait, TotalWait time.Duration
	Duration               time.Duration // includes the long poll
}

// PollFailed is one failed receive call.
type PollFailed struct {
	Err      error
	Failures int // consecutive failures
	// Permanent is true if the queue rejected the call and an operator must act. The worker keeps retrying slowly.
	Permanent bool
	RetryIn   time.Duration
}

// Duplicate is one receive of a message already held or done.
type Duplicate struct {
	ID string
	// Stage is "waiting", "ready", "posting", "postponed", "dead-lettering" or "deleting", or "done" if the worker
	// gave up deleting the message.
	Stage string
}

// Settled is the result of one delivery.
type Settled struct {
	ID, GroupID  string
	Task         string // the periodic task of a scheduled run, or ""
	ReceiveCount int
	// Attempt is ReceiveCount minus the receives before a redrive and those whose messages never reached the app, if
	// known.
	Attempt int
	// ReceivesHere is the number of receives in this queue, which the redrive policy counts; 0 if unknown.
	ReceivesHere int
	// The fields from here to Instruction, and Unsent, come from the [queue.Result].
	Outcome          queue.Outcome
	Answer           string
	Status           int
	Reason           string
	Err              error
	Excerpt, Process string
	Instruction      queue.Instruction
	Batch            int // number of messages in the delivery
	// Wait is the time from sending to the start of the delivery; Held is how long the message waited for a slot.
	Duration, Wait, Held time.Duration
	// NextRetry is when the message is expected to become visible again; zero if it is done.
	NextRetry time.Time
	// Late is true if the visibility timeout had expired, so that another worker may hold the message.
	Late    bool
	Aborted bool // cancelled because Run was ending
	Unsent  bool
	// DeadLettering is true if the message is being sent to the dead-letter queue.
	DeadLettering bool
}

// DeadLettered is one message sent to the dead-letter queue.
type DeadLettered struct {
	ID          string
	Reason      string            // reason of the failure
	Instruction queue.Instruction // NoInstruction if dead-lettered after the last receive
	// Err is why the dead-letter queue did not accept the message; nil on success.
	Err error
}

// Postponed is one delivery that made no attempt.
type Postponed struct {
	Kept bool // false if the message was returned to the queue
	// Throttled is true if the target throttled the delivery. Status is the HTTP status, if it responded.
	Throttled bool
	Status    int
	Duration  time.Duration // duration of the delivery
}

// Deleted is one queue call that deleted messages.
type Deleted struct {
	Messages int
	Duration time.Duration
}

// DeleteFailed is one delete that was not confirmed.
type DeleteFailed struct {
	ID  string
	Err error
	// Final is true if the delete is not retried. The worker remembers that the message was processed.
	Final bool
	// DeadLetter is true if the message was already sent to the dead-letter queue, where it may arrive twice.
	DeadLetter bool
}

// Extended is one queue call that extended visibility timeouts.
type Extended struct {
	Messages int
	Duration time.Duration
}

// ChangeFailed is one visibility change that was not confirmed.
type ChangeFailed struct {
	ID   string
	Kind string // "extend", "retry" (the delay after a failure) or "give back" (a return to the queue)
	Err  error
}

// Returned is one queue call that returned unposted messages.
type Returned struct{ Messages int }

// VisibilityExpired is one visibility timeout that expired while the worker held the message.
type VisibilityExpired struct {
	ID string
	// InWork is true if the message was being delivered. Otherwise the worker drops it without posting it.
	InWork bool
}

// Expired is one message past its retention.
type Expired struct {
	ID              string
	ReceiveCount    int
	FirstReceivedAt time.Time
}

// Filtered is one message that the filter did not match.
type Filtered struct {
	ID           string
	ReceiveCount int
}

// GateChanged is a change in the reasons for not receiving.
type GateChanged struct {
	Open    bool // true if there are no reasons left
	Reasons []Reason
}

// Throttled is one pause that the target requested.
type Throttled struct {
	For         time.Duration // how long receives and deliveries are paused
	Reason      string        // reason given by the delivery
	Consecutive int           // pauses since the target last accepted a message
}

// Limited is the start or end of a period in which a [Limiter] refuses deliveries. Refusals less than a second apart
// belong to the same period.
type Limited struct {
	Reason string        // reason given by the limiter
	Over   bool          // true at the end of the period
	For    time.Duration // length of the period, set at its end
}

// Stalled is a period in which the process did not run.
type Stalled struct {
	For time.Duration // measured by the monotonic or the wall clock, whichever shows the longer gap
}

// JoinEvents returns an Events whose listeners call those of all arguments in order.
func JoinEvents(all ...*Events) *Events {
	e := *all[0]
	for _, more := range all[1:] {
		e.Received = both(e.Received, more.Received)
		e.PollFailed = both(e.PollFailed, more.PollFailed)
		e.Duplicate = both(e.Duplicate, more.Duplicate)
		e.Settled = both(e.Settled, more.Settled)
		e.Postponed = both(e.Postponed, more.Postponed)
		e.DeadLettered = both(e.DeadLettered, more.DeadLettered)
		e.Deleted = both(e.Deleted, more.Deleted)
		e.DeleteFailed = both(e.DeleteFailed, more.DeleteFailed)
		e.Extended = both(e.Extended, more.Extended)
		e.ChangeFailed = both(e.ChangeFailed, more.ChangeFailed)
		e.Returned = both(e.Returned, more.Returned)
		e.VisibilityExpired = both(e.VisibilityExpired, more.VisibilityExpired)
		e.Expired = both(e.Expired, more.Expired)
		e.Filtered = both(e.Filtered, more.Filtered)
		e.GateChanged = both(e.GateChanged, more.GateChanged)
		e.Throttled = both(e.Throttled, more.Throttled)
		e.Limited = both(e.Limited, more.Limited)
		e.Stalled = both(e.Stalled, more.Stalled)
	}

	return &e
}

func both[E any](f, g func(E)) func(E) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(e E) { f(e); g(e) }
}

// Block is a kind of reason for not receiving.
type Block string

// A worker may have several blocks at the same time.
const (
	// Paused means that [Worker.Pause] was called.
	Paused Block = "paused"
	// NotReady means that [Worker.Gate] closed the gate.
	NotReady Block = "not ready"
	// AppDown means that the app refuses connections. It is probed until it responds.
	AppDown Block = "app down"
	// DeleteRefused means that the queue permanently rejects deletes. If the worker kept receiving, it would process
	// the same messages again and again.
	DeleteRefused Block = "delete refused"
	// Throttling means that the target requested a pause. The gate opens when the pause ends.
	Throttling Block = "throttled"
	// Draining means that the worker is stopping.
	Draining Block = "draining"
	// BreakerOpen means that the limiter's circuit breaker is open. It does not close the gate, so the worker keeps
	// its messages.
	BreakerOpen Block = "breaker"
)

// Reason is one reason for not receiving.
type Reason struct {
	Block Block
	Text  string
	Since time.Time
}
