package worker

import (
	"time"

	"tendril/queue"
)

// Events are a worker's listeners: the only way to watch it work, besides
// [Worker.Status]. Every field may be nil. They are called without locks held,
// from the goroutine that did the thing, so from many at once: a listener must
// be safe for that and must not block.
type Events struct {
	// Received follows each receive that the queue answered, also with nothing.
	Received func(Received)
	// PollFailed follows each receive that the queue did not answer.
	PollFailed func(PollFailed)
	// Duplicate is a message that came again while it was held here, or after
	// its success was read but its delete never confirmed: not posted again.
	Duplicate func(Duplicate)
	// Started precedes each delivery; a message that is postponed is delivered
	// several times.
	Started func(Started)
	// Settled follows each delivery that tried its message, once.
	Settled func(Settled)
	// Postponed follows each delivery that tried nothing, instead of Settled; also
	// one that the target throttled, if its message waits here.
	Postponed func(Postponed)
	// DeadLettered is a message that the worker sent to the dead-letter queue, or could not.
	DeadLettered func(DeadLettered)
	// Deleted follows each call that deleted at least one message.
	Deleted func(Deleted)
	// DeleteFailed is a delete that was not confirmed, for each try.
	DeleteFailed func(DeleteFailed)
	// Extended follows each call that extended at least one message.
	Extended func(Extended)
	// ChangeFailed is a change of visibility that was not confirmed.
	ChangeFailed func(ChangeFailed)
	// Returned follows each call that made messages visible again which were
	// received but never posted: at once, or in a minute when too many are
	// postponed.
	Returned func(Returned)
	// VisibilityExpired is a receipt whose visibility ran out while it was held.
	VisibilityExpired func(VisibilityExpired)
	// Expired is a message past its retention, deleted without being posted.
	Expired func(Expired)
	// Filtered is a message that the filter did not match, deleted without being posted.
	Filtered func(Filtered)
	// GateChanged says that receiving stopped or went on, or why it stands
	// still now.
	GateChanged func(GateChanged)
	// Throttled says that the target takes nothing for now, at the start of each
	// pause and when one gets longer.
	Throttled func(Throttled)
	// Limited is the start or the end of a time in which [Options].Limiter
	// keeps messages back.
	Limited func(Limited)
	// Stalled says that the whole process stood still: stopped by a signal,
	// suspended with its machine, or starved.
	Stalled func(Stalled)
}

// Received is one answered receive.
type Received struct {
	// Asked is how many messages the receive asked for, Messages how many came.
	Asked, Messages int
	// LongestWait and TotalWait are the time between the sending of these
	// messages and now: the longest, and all added up.
	LongestWait, TotalWait time.Duration
	Duration               time.Duration // the long poll's wait included
}

// PollFailed is one receive without an answer.
type PollFailed struct {
	Err      error
	Failures int // in a row, this one included
	// Permanent is true when the queue refused (access denied, no such queue):
	// an operator has to act. The worker goes on asking, slowly.
	Permanent bool
	RetryIn   time.Duration // until the next receive
}

// Duplicate is one receive of a message that was held, or done, already.
type Duplicate struct {
	ID           string
	ReceiveCount int
	// Stage is where the message was: "waiting", "ready", "posting",
	// "postponed", "dead-lettering", "deleting", or "done" for one whose delete was given up.
	Stage string
}

// Started is the start of one delivery.
type Started struct {
	ID, GroupID  string
	ReceiveCount int
	// Attempt is ReceiveCount without the receives before a redrive, where the queue
	// tells of them, and those of which this process knows that they never reached the
	// app.
	Attempt int
	Batch   int // messages of the delivery
	// Wait is the time since the message was sent, Held how long it waited here
	// for a slot.
	Wait, Held time.Duration
}

// Settled is the end of one delivery.
type Settled struct {
	ID, GroupID           string
	ReceiveCount, Attempt int
	// ReceivesHere is how often the message was received since it came to its queue:
	// what the queue's redrive policy counts. 0 where that is not known.
	ReceivesHere int
	// Outcome to Err, and Unsent, are those of the [queue.Result].
	Outcome queue.Outcome
	Answer  string
	Status  int
	Reason  string
	Err     error
	// Excerpt, Process and Instruction are those of the [queue.Result] too.
	Excerpt, Process string
	Instruction      queue.Instruction
	Batch            int // messages of the delivery; each has its own Settled
	// Duration is the delivery's; Wait is from the sending of the message to
	// the start of the delivery; Held is how long it waited here for a slot.
	Duration, Wait, Held time.Duration
	// NextRetry is when the message becomes visible again, as far as this
	// worker knows; zero when done.
	NextRetry time.Time
	// Late is true when the receipt had lapsed before the end: another worker
	// may have the message, and the queue may refuse the delete.
	Late    bool
	Aborted bool // cut off by the end of Run
	Unsent  bool
	// DeadLettering is true when the worker sends the message to the dead-letter queue now: it was the last attempt, or
	// an instruction said so.
	DeadLettering bool
}

// DeadLettered is one message that failed at its last receive, or that an instruction sent to the dead-letter queue.
type DeadLettered struct {
	ID          string
	Reason      string            // of the failure
	Instruction queue.Instruction // none for one that failed at its last receive
	// Err is why it was not sent: it is tried again, or the queue's redrive policy moves it. Nil when the dead-letter
	// queue accepted it.
	Err error
}

// Postponed is one delivery that tried nothing.
type Postponed struct {
	ID, GroupID string
	Reason      string // of the delivery
	Kept        bool   // in hand; false when it is given back
	// For is when it is asked for again, from now on; 0 for one that is given
	// back, or waits for its FIFO group.
	For time.Duration
	// Throttled is true when the target was asked and refused for now. Status is
	// then what it answered, 0 for none.
	Throttled bool
	Status    int
	Duration  time.Duration // of finding that out
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
	// Final is true when it is not tried again: the message may be attempted
	// again, though not by this process as long as it remembers the success.
	Final bool
	// DeadLetter is true for a message that was sent to the dead-letter queue: it may come there a second time.
	DeadLetter bool
}

// Extended is one call that extended the visibility of messages in work.
type Extended struct {
	Messages int
	Duration time.Duration
}

// ChangeFailed is one change of visibility that was not confirmed.
type ChangeFailed struct {
	ID   string
	Kind string // "extend", "retry" (the delay after a failure) or "give back"
	Err  error
	// Final is true when it is not tried again: the message becomes visible
	// when its present visibility ends.
	Final bool
}

// Returned is one call that gave unposted messages back.
type Returned struct{ Messages int }

// VisibilityExpired is one receipt whose visibility ran out.
type VisibilityExpired struct {
	ID string
	// InWork is true when the app was working on it, false when it was never
	// posted; then it is dropped.
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

// GateChanged is a change of what keeps the worker from receiving.
type GateChanged struct {
	Open    bool     // nothing does
	Reasons []Reason // what does, empty when open
}

// Throttled is one pause that the target asked for.
type Throttled struct {
	For         time.Duration // from now on, nothing is received and delivered
	Reason      string        // of the delivery
	Consecutive int           // pauses since the target last took a message
}

// Limited is the start or the end of a time in which a [Limiter] keeps messages
// back. Refusals less than a second apart are one such time.
type Limited struct {
	Reason string        // the limiter's
	Over   bool          // at the end
	For    time.Duration // how long it was, at the end
}

// Stalled is a time in which the process did not run.
type Stalled struct {
	For time.Duration // by the monotonic or the wall clock, whichever gap is longer
}

// JoinEvents returns listeners that call the listeners of all, in this order. A field
// that is nil in all of them stays nil.
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

// both calls f and then g; either may be nil.
func both[E any](f, g func(E)) func(E) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(e E) { f(e); g(e) }
}

// Block is one kind of thing that keeps a worker from receiving.
type Block string

// The blocks. Any number of them may stand at once.
const (
	// Paused: by [Worker.Pause].
	Paused Block = "paused"
	// NotReady: the environment closed the gate with [Worker.Gate].
	NotReady Block = "not ready"
	// AppDown: the app refuses connections; it is probed until it answers.
	AppDown Block = "app down"
	// DeleteRefused: the queue refuses deletes for good (access denied, no
	// such queue). Receiving would only run messages again and again.
	DeleteRefused Block = "delete refused"
	// Throttling: the target refused to take anything for now; the gate opens
	// by itself when the pause is over.
	Throttling Block = "throttled"
	// Draining: the worker is stopping.
	Draining Block = "draining"
	// BreakerOpen: the breaker of the limiter lets nothing begin. It is not part of the
	// gate: messages that are held wait for their time.
	BreakerOpen Block = "breaker"
)

// Reason says why a worker does not receive.
type Reason struct {
	Block Block
	Text  string    // for people
	Since time.Time // the begin
}
