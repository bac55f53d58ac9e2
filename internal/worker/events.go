package worker

import (
	"time"

	"tendril/queue"
)

// Events are the listeners of a worker; each may be nil. They must be safe for concurrent use, and run without locks
// held.
type Events struct {
	Received   func(Received)
	PollFailed func(PollFailed)
	Duplicate  func(Duplicate)
	Settled    func(Settled)
	// Postponed is called instead of Settled without an attempt, or if a throttled message is kept.
	Postponed         func(Postponed)
	DeadLettered      func(DeadLettered)
	Deleted           func(Deleted)
	DeleteFailed      func(DeleteFailed)
	Extended          func(Extended)
	ChangeFailed      func(ChangeFailed)
	Returned          func(Returned)
	VisibilityExpired func(VisibilityExpired)
	Expired           func(Expired)
	Filtered          func(Filtered)
	GateChanged       func(GateChanged)
	Throttled         func(Throttled)
	Limited           func(Limited)
	Stalled           func(Stalled)
}

// Received is a successful receive call, perhaps without messages.
type Received struct {
	Messages    int
	LongestWait time.Duration
	Duration    time.Duration // includes the long poll
}

// PollFailed is a failed receive call.
type PollFailed struct {
	Err      error
	Failures int // in a row
	// Permanent means that an operator must act. The worker retries slowly.
	Permanent bool
	RetryIn   time.Duration
}

// Duplicate is a receive of a message already held or done.
type Duplicate struct {
	ID   string
	Task string
	// Stage is "waiting", "ready", "posting", "postponed", "dead-lettering", "deleting", or "done" if a delete was
	// given up.
	Stage string
}

// Settled is the result of a message's delivery.
type Settled struct {
	ID, GroupID  string
	Task         string // of a scheduled run, or ""
	ReceiveCount int
	// Attempt is ReceivesHere, or ReceiveCount if that is unknown, without receives known not to have reached the
	// app.
	Attempt int
	// ReceivesHere is this queue's receive count, which the redrive policy limits; 0 if unknown.
	ReceivesHere int
	// Outcome to Instruction, and Unsent, come from the [queue.Result].
	Outcome          queue.Outcome
	Answer           string
	Status           int
	Reason           string
	Err              error
	Excerpt, Process string
	Instruction      queue.Instruction
	Batch            int // messages in the delivery
	// Wait is the time from sending to the start of the delivery. Held is the time the message waited for a slot.
	Duration, Wait, Held time.Duration
	// NextRetry is when the message should become visible, or zero if it was deleted, dead-lettered or returned
	// immediately.
	NextRetry time.Time
	// Late means that the visibility timeout had expired, so another worker may hold the message.
	Late          bool
	Aborted       bool // because Run was ending
	Unsent        bool
	DeadLettering bool
}

// DeadLettered is an attempt to send a message to the dead-letter queue.
type DeadLettered struct {
	ID          string
	Task        string
	Reason      string
	Instruction queue.Instruction // NoInstruction after the last receive
	Err         error
}

// Postponed is a delivery that made no attempt or that the target throttled.
type Postponed struct {
	Kept bool // false if returned to the queue
	// Throttled means that the target throttled the delivery. Status is the HTTP status of its response, or 0.
	Throttled bool
	Status    int
	Duration  time.Duration
}

// Deleted is a queue call that deleted messages.
type Deleted struct {
	Messages int
	Duration time.Duration
}

// DeleteFailed is an unconfirmed delete.
type DeleteFailed struct {
	ID   string
	Task string
	Err  error
	// Final means no further retries.
	Final bool
	// DeadLetter means that the message is already in the dead-letter queue, and may arrive there twice.
	DeadLetter bool
}

// Extended is a queue call that extended visibility timeouts.
type Extended struct {
	Messages int
	Duration time.Duration
}

// ChangeFailed is an unconfirmed visibility change.
type ChangeFailed struct {
	ID   string
	Task string
	Kind string // "extend", "retry" (after a failure) or "return" (to the queue)
	Err  error
}

// Returned is a queue call that returned unposted messages.
type Returned struct{ Messages int }

// VisibilityExpired is a visibility timeout that expired while the worker held the message.
type VisibilityExpired struct {
	ID   string
	Task string
	// InWork means that the message was being delivered. Otherwise, it is dropped unposted, unless it is being
	// dead-lettered.
	InWork bool
}

// Expired is a message past its retention, which is deleted unposted.
type Expired struct {
	ID              string
	Task            string
	ReceiveCount    int
	FirstReceivedAt time.Time
}

// Filtered is a message that the filter did not match, which is deleted unposted.
type Filtered struct {
	ID           string
	Task         string
	ReceiveCount int
}

// GateChanged is a change in the reasons for not receiving.
type GateChanged struct {
	Open    bool
	Reasons []Reason
}

// Throttled is the start or extension of a pause for a throttling target.
type Throttled struct {
	For         time.Duration
	Reason      string
	Consecutive int // pauses since the target last accepted a message
}

// Limited is the start or end of a period in which a [Limiter] refuses.
type Limited struct {
	Reason string
	Over   bool
	For    time.Duration // set at the end of the period
}

// Stalled is a period in which the process was stopped, suspended or starved of CPU time.
type Stalled struct {
	For time.Duration // according to the monotonic or the wall clock, whichever shows more
}

// JoinEvents returns Events that call the listeners of all arguments in order.
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

// Block identifies why a worker is not receiving.
type Block string

// A worker can have several blocks at the same time.
const (
	// Paused is set by [Worker.Pause].
	Paused Block = "paused"
	// NotReady is set by [Worker.Gate].
	NotReady Block = "not ready"
	// AppDown means that the app is unreachable and being probed.
	AppDown Block = "app down"
	// DeleteRefused means that the queue permanently rejects deletes, so messages would be processed repeatedly.
	DeleteRefused Block = "delete refused"
	// Throttling means that a target throttled deliveries. The gate stays closed until the pause ends.
	Throttling Block = "throttled"
	// Draining means that the worker is stopping.
	Draining Block = "draining"
	// BreakerOpen means that the limiter's circuit breaker is open. The gate stays open, and the worker keeps its
	// messages.
	BreakerOpen Block = "breaker"
)

// Reason is one reason for not receiving.
type Reason struct {
	Block Block
	Text  string
	Since time.Time
}
