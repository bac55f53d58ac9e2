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
	// Duplicate is called when a held or done message is received again.
	Duplicate func(Duplicate)
	// Started is called before each delivery.
	Started func(Started)
	// Settled is called after each delivery that tried its message.
	Settled func(Settled)
	// Postponed is called instead of Settled if nothing was tried, or a throttled message is kept.
	Postponed func(Postponed)
	// DeadLettered is called for each message sent to the dead-letter queue, successfully or not.
	DeadLettered func(DeadLettered)
	// Deleted is called after each call that deleted messages.
	Deleted func(Deleted)
	// DeleteFailed is called after each failed delete.
	DeleteFailed func(DeleteFailed)
	// Extended is called after each call that extended messages.
	Extended func(Extended)
	// ChangeFailed is called after each failed visibility change.
	ChangeFailed func(ChangeFailed)
	// Returned is called after each call that returned unposted messages.
	Returned func(Returned)
	// VisibilityExpired is called when the visibility of a held message ends.
	VisibilityExpired func(VisibilityExpired)
	// Expired is called for each message deleted unposted, past its retention.
	Expired func(Expired)
	// Filtered is called for each message deleted unposted by the filter.
	Filtered func(Filtered)
	// GateChanged is called when receiving stops or resumes, or the reasons change.
	GateChanged func(GateChanged)
	// Throttled is called when the target asks for a pause, or extends one.
	Throttled func(Throttled)
	// Limited is called at the start and end of each limited period.
	Limited func(Limited)
	// Stalled is called after the process did not run for a while: stopped by a signal, suspended or starved.
	Stalled func(Stalled)
}

// Received is one answered receive.
type Received struct {
	// Asked is the number of messages requested, Messages the number received.
	Asked, Messages int
	// LongestWait and TotalWait are the times since these messages were sent.
	LongestWait, TotalWait time.Duration
	Duration               time.Duration // including the long poll
}

// PollFailed is one failed receive.
type PollFailed struct {
	Err      error
	Failures int // consecutive
	// Permanent is true if the queue refused and an operator has to act. The worker keeps retrying slowly.
	Permanent bool
	RetryIn   time.Duration
}

// Duplicate is one receive of a message already held or done.
type Duplicate struct {
	ID           string
	ReceiveCount int
	// Stage is "waiting", "ready", "posting", "postponed", "dead-lettering", "deleting", or "done" after a lost
	// delete.
	Stage string
}

// Started is the start of one delivery.
type Started struct {
	ID, GroupID  string
	ReceiveCount int
	// Attempt is ReceiveCount without receives before a redrive, and without those that never reached the app, if
	// known.
	Attempt int
	Batch   int // messages in the delivery
	// Wait is the time since sending, Held the time waiting for a slot.
	Wait, Held time.Duration
}

// Settled is the result of one delivery.
type Settled struct {
	ID, GroupID           string
	ReceiveCount, Attempt int
	// ReceivesHere is the redrive policy's count of receives in this queue; 0 if unknown.
	ReceivesHere int
	// These fields, and Unsent, come from the [queue.Result].
	Outcome          queue.Outcome
	Answer           string
	Status           int
	Reason           string
	Err              error
	Excerpt, Process string
	Instruction      queue.Instruction
	Batch            int // messages in the delivery
	// Wait is the time from sending to the start of the delivery, Held the time waiting for a slot.
	Duration, Wait, Held time.Duration
	// NextRetry is when the message should become visible again; zero if done.
	NextRetry time.Time
	// Late is true if the receipt had lapsed, so another worker may hold the message.
	Late    bool
	Aborted bool // cancelled by the end of Run
	Unsent  bool
	// DeadLettering is true if the message is now sent to the dead-letter queue.
	DeadLettering bool
}

// DeadLettered is one message sent to the dead-letter queue.
type DeadLettered struct {
	ID          string
	Reason      string            // of the failure
	Instruction queue.Instruction // NoInstruction after the last receive
	// Err is why the dead-letter queue did not accept the message; nil on success.
	Err error
}

// Postponed is one delivery that tried nothing.
type Postponed struct {
	ID, GroupID string
	Reason      string // of the delivery
	Kept        bool   // false if returned to the queue
	// For is the time until the next delivery; 0 if returned or waiting for its FIFO group.
	For time.Duration
	// Throttled is true if the target refused for now, with Status if it responded.
	Throttled bool
	Status    int
	Duration  time.Duration // of the delivery
}

// Deleted is one call that deleted messages.
type Deleted struct {
	Messages int
	Duration time.Duration
}

// DeleteFailed is one delete that was not confirmed.
type DeleteFailed struct {
	ID  string
	Err error
	// Final is true if the delete is not retried. The success is remembered.
	Final bool
	// DeadLetter is true if the message was dead-lettered. It may arrive there twice.
	DeadLetter bool
}

// Extended is one call that extended messages.
type Extended struct {
	Messages int
	Duration time.Duration
}

// ChangeFailed is one visibility change that was not confirmed.
type ChangeFailed struct {
	ID   string
	Kind string // "extend", "retry" (the delay after a failure) or "give back"
	Err  error
	// Final is true if the change is not retried.
	Final bool
}

// Returned is one call that returned unposted messages.
type Returned struct{ Messages int }

// VisibilityExpired is one receipt that expired while held.
type VisibilityExpired struct {
	ID string
	// InWork is true if the message was being delivered. Otherwise it is dropped unposted.
	InWork bool
}

// Expired is one message past its retention.
type Expired struct {
	ID                      string
	ReceiveCount            int
	FirstReceivedAt, SentAt time.Time
}

// Filtered is one message that the filter did not match.
type Filtered struct {
	ID           string
	ReceiveCount int
}

// GateChanged is a change of the reasons for not receiving.
type GateChanged struct {
	Open    bool // no reasons are left
	Reasons []Reason
}

// Throttled is one pause that the target asked for.
type Throttled struct {
	For         time.Duration // time without receives and deliveries
	Reason      string        // of the delivery
	Consecutive int           // pauses since the target last accepted a message
}

// Limited is the start or end of a period in which a [Limiter] refuses. Refusals less than a second apart belong
// together.
type Limited struct {
	Reason string        // the limiter's
	Over   bool          // at the end
	For    time.Duration // duration, at the end
}

// Stalled is a period in which the process did not run.
type Stalled struct {
	For time.Duration // by the monotonic or the wall clock, whichever gap is longer
}

// JoinEvents returns listeners that call the listeners of all arguments in order.
func JoinEvents(all ...*Events) *Events {
	e := *all[0]
	for _, more := range all[1:] {
		e.Received = both(e.Received, more.Received)
		e.PollFailed = both(e.PollFailed, more.PollFailed)
		e.Duplicate = both(e.Duplicate, more.Duplicate)
		e.Started = both(e.Started, more.Started)
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

// Several blocks may exist at once.
const (
	// Paused means that [Worker.Pause] was called.
	Paused Block = "paused"
	// NotReady means that [Worker.Gate] closed the gate.
	NotReady Block = "not ready"
	// AppDown means that the app refuses connections. It is probed until it responds.
	AppDown Block = "app down"
	// DeleteRefused means that the queue permanently refuses deletes. Receiving would run messages again and again.
	DeleteRefused Block = "delete refused"
	// Throttling means that the target asked for a pause. The gate opens by itself when it ends.
	Throttling Block = "throttled"
	// Draining means that the worker is stopping.
	Draining Block = "draining"
	// BreakerOpen means that the limiter's circuit breaker is open. It does not close the gate, so held messages wait.
	BreakerOpen Block = "breaker"
)

// Reason is one reason for not receiving.
type Reason struct {
	Block Block
	Text  string // human-readable
	Since time.Time
}
