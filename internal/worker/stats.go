package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// Status is the state of a worker at one moment.
type Status struct {
	Name    string    // of the options
	Phase   string    // "not started", "running", "draining", "aborting" or "stopped"
	Started time.Time // the call of Run; zero before
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

	Counts    Counts  // since the start of Run
	PerSecond float64 // settled deliveries, averaged over about 10 s
	// ServiceTime is the average duration of a delivery, RoundTrip that of a
	// receive which need not wait; 0 when not known yet.
	ServiceTime, RoundTrip time.Duration

	// Oldest is how long ago the oldest message that is held and not done was
	// sent; LongestWait the longest time from the sending of a message to its
	// delivery, of those begun in the last minute; 0 when there are none.
	Oldest, LongestWait time.Duration
	// Turns is how many messages began in the last minute; TurnShare the share,
	// 0 to 1, that they are of all that the pool began. It is 1 without a pool,
	// and 0 when nothing began.
	Turns     int64
	TurnShare float64
	LimitedBy string     // the limiter's reason as long as it keeps messages back
	LastError *LastError // the latest trouble with the queue; nil when there was none
}

// LastError is one failure of a call of the queue.
type LastError struct {
	At     time.Time
	Action string // "receive", "delete", "dead-lettering" or "change of visibility"
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
	// Deleted counts confirmed deletes, DeletesLost those given up, Expired messages past
	// their retention, Filtered those that the filter did not match.
	Deleted, DeletesLost, Expired, Filtered int64
	// Extended counts extensions, Returned unposted messages made visible
	// again, VisibilityExpired receipts whose visibility ran out while held.
	Extended, Returned, VisibilityExpired int64
	// Polls counts the calls of Receive, EmptyPolls and FailedPolls those that
	// brought nothing; DeleteCalls and ChangeCalls count the other two calls.
	Polls, EmptyPolls, FailedPolls, DeleteCalls, ChangeCalls int64
	Promoted                                                 int64 // turns that MaxWait gave this queue ahead of the order
	Limited                                                  int64 // times in which the limiter kept messages back
	Stalls                                                   int64 // times in which the process stood still
}

// statistics are the figures of Status about the past.
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

// settled counts a message whose try ended.
func (c *Counts) settled(e *Settled) {
	switch e.Outcome {
	case queue.Done:
		c.Done++
	case queue.Unreached:
		c.Unreached++
	case queue.Throttled:
		c.Throttled++
	default:
		c.Failed++
	}
	if e.Aborted {
		c.Aborted++
	}
	if e.Late {
		c.Late++
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
