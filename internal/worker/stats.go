package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// Status is a snapshot of a worker.
type Status struct {
	Name    string    // from the options
	Phase   string    // "not started", "running", "draining", "aborting" or "stopped"
	Started time.Time // when Run was called; zero before
	// Receiving is false if there are Reasons: the gate's, or an open breaker.
	Receiving bool
	Reasons   []Reason

	// Concurrency is the configured limit; Limit is lower for a while after an outage of the app.
	Concurrency, Limit int
	// InWork is the number of running deliveries and Polls the number of open receives. The others count messages:
	// Prefetched wait for a slot, Waiting behind their FIFO group, Postponed for another delivery, Unconfirmed for a
	// confirmed delete.
	InWork, Prefetched, Waiting, Postponed, Unconfirmed, Polls int

	Counts    Counts  // since the start of Run
	PerSecond float64 // settled messages, averaged over about 10 s
	// ServiceTime is the average duration of a delivery, RoundTrip of a receive that does not wait; 0 if unknown.
	ServiceTime, RoundTrip time.Duration

	// Oldest is the age of the oldest held message. LongestWait is the longest time from sending to the start of a
	// delivery in the last minute. Both are 0 without messages.
	Oldest, LongestWait time.Duration
	// LongestDelivery is the age of the oldest running delivery.
	LongestDelivery time.Duration
	// Turns is the number of messages started in the last minute, TurnShare their share in the pool, 0 to 1.
	Turns     int64
	TurnShare float64
	LimitedBy string     // the limiter's reason while it limits
	LastError *LastError // may be nil
}

// LastError is a failed queue call.
type LastError struct {
	At     time.Time
	Action string // "receive", "delete", "dead-lettering" or "change of visibility"
	Err    error
}

// Counts are numbers of messages and queue calls.
type Counts struct {
	// Received includes Duplicates, receives of messages already held or done.
	Received, Duplicates int64
	// Posted counts started deliveries of messages; Done, Failed, Unreached, Throttled and Postponed count their
	// results. Aborted were cancelled by the end of Run; Late ended after their receipt had lapsed.
	Posted, Done, Failed, Unreached, Throttled, Postponed, Aborted, Late int64
	// Deleted counts confirmed deletes, DeletesLost deletes given up, Expired messages past their retention.
	Deleted, DeletesLost, Expired, Filtered int64
	// Returned counts unposted messages made visible again, VisibilityExpired receipts that expired while held.
	Extended, Returned, VisibilityExpired int64
	// EmptyPolls and FailedPolls count receives without messages or answer.
	Polls, EmptyPolls, FailedPolls, DeleteCalls, ChangeCalls int64
	Promoted                                                 int64 // turns out of order because of MaxWait
	Limited                                                  int64 // periods of limiting
	Stalls                                                   int64 // times the process did not run
}

type statistics struct {
	started   time.Time
	counts    Counts
	lastError *LastError

	perSecond      float64
	measured       time.Time
	settledAtStart int64 // settled messages at the time measured
}

func (t *statistics) failed(action string, err error, now time.Time) {
	t.lastError = &LastError{At: now, Action: action, Err: err}
}

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

func (t *statistics) measure(now time.Time) {
	settled := t.counts.Done + t.counts.Failed + t.counts.Unreached + t.counts.Throttled
	if dt := now.Sub(t.measured).Seconds(); !t.measured.IsZero() && dt > 0 {
		rate := float64(settled-t.settledAtStart) / dt
		t.perSecond += (rate - t.perSecond) * (1 - math.Exp(-dt/10))
	}
	t.measured, t.settledAtStart = now, settled
}
