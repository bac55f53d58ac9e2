package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// Status is what a worker does at one moment.
type Status struct {
	// Name is that of the options.
	Name string
	// Phase is "not started", "running", "draining", "aborting" or "stopped".
	Phase string
	// Started is when Run was called; zero before.
	Started time.Time
	// Receiving is true when nothing keeps the worker from receiving; Reasons
	// says what does: the gate's, and the breaker of a limiter.
	Receiving bool
	Reasons   []Reason

	// Concurrency is the most deliveries at once as configured, Limit as it is
	// now: lower for a while after an outage of the app.
	Concurrency, Limit int
	// InWork is how many deliveries run; Prefetched how many messages wait for
	// a slot; Waiting how many wait behind their FIFO group; Postponed how many
	// are kept until the deliverer is asked again; Unconfirmed how many are done
	// or expired without a confirmed delete; Polls how many receives are open.
	InWork, Prefetched, Waiting, Postponed, Unconfirmed, Polls int

	// Counts are since the start of Run.
	Counts Counts
	// PerSecond is the rate of settled deliveries, averaged over about 10 s.
	PerSecond float64
	// ServiceTime is the average duration of a delivery, RoundTrip that of a
	// receive which need not wait; 0 when not known yet.
	ServiceTime, RoundTrip time.Duration

	TurnStatus
	// LimitedBy is the limiter's reason as long as it keeps messages back, ""
	// when it does not.
	LimitedBy string

	// LastError is the latest trouble with the queue; nil when there was none.
	LastError *LastError
}

// TurnStatus is how a queue fares among others.
type TurnStatus struct {
	// Oldest is how long ago the oldest message in hand that is not done was
	// sent; LongestWait the longest time from the sending of a message to its
	// delivery, of those begun in the last minute; 0 when there are none.
	Oldest, LongestWait time.Duration
	// Turns is how many messages began in the last minute; TurnShare the share,
	// 0 to 1, that they are of all that the pool began. It is 1 without a pool,
	// and 0 when nothing began.
	Turns     int64
	TurnShare float64
}

// LastError is one failure of a call of the queue.
type LastError struct {
	At time.Time
	// Action is "receive", "delete" or "change of visibility".
	Action string
	Err    error
}

// Counts are numbers of messages, and of calls of the queue.
type Counts struct {
	// Received counts every message of every receive; Duplicates those of them
	// that were held or done already.
	Received, Duplicates int64
	// Posted counts messages whose delivery began, each time; Done, Failed,
	// Unreached, Throttled and Postponed their ends, Aborted those that the stop
	// cut off; Late those that ended after their receipt had lapsed.
	Posted, Done, Failed, Unreached, Throttled, Postponed, Aborted, Late int64
	// Deleted counts confirmed deletes, DeletesLost those given up.
	Deleted, DeletesLost int64
	// Expired counts messages past their retention.
	Expired int64
	// Extended counts extensions, Returned unposted messages made visible
	// again, VisibilityExpired receipts whose visibility ran out while held.
	Extended, Returned, VisibilityExpired int64
	CallCounts
	// Promoted counts the turns that MaxWait gave this queue ahead of the order.
	Promoted int64
	// Limited counts the times in which the limiter kept messages back.
	Limited int64
	// Stalls counts how often the process stood still.
	Stalls int64
}

// CallCounts are numbers of calls of the queue.
type CallCounts struct {
	// Polls counts the calls of Receive, EmptyPolls and FailedPolls those that
	// brought nothing; DeleteCalls and ChangeCalls count the other two calls.
	Polls, EmptyPolls, FailedPolls, DeleteCalls, ChangeCalls int64
}

// statistics is what Status shows of the past.
type statistics struct {
	started   time.Time
	counts    Counts
	lastError *LastError

	perSecond      float64
	measured       time.Time
	settledAtStart int64 // settled deliveries at the time measured
}

// failed notes trouble with the queue.
func (t *statistics) failed(action string, err error, now time.Time) {
	t.lastError = &LastError{At: now, Action: action, Err: err}
}

// settled counts the end of a delivery.
func (t *statistics) settled(s *Settled) {
	switch s.Outcome {
	case queue.Done:
		t.counts.Done++
	case queue.Unreached:
		t.counts.Unreached++
	case queue.Throttled:
		t.counts.Throttled++
	default:
		t.counts.Failed++
	}
	if s.Aborted {
		t.counts.Aborted++
	}
	if s.Late {
		t.counts.Late++
	}
}

// measure updates the rate.
func (t *statistics) measure(now time.Time) {
	settled := t.counts.Done + t.counts.Failed + t.counts.Unreached + t.counts.Throttled
	if dt := now.Sub(t.measured).Seconds(); !t.measured.IsZero() && dt > 0 {
		rate := float64(settled-t.settledAtStart) / dt
		t.perSecond += (rate - t.perSecond) * (1 - math.Exp(-dt/10))
	}
	t.measured, t.settledAtStart = now, settled
}
