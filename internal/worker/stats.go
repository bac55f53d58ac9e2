package worker

import (
	"math"
	"time"

	"tendril/internal/observe/window"
	"tendril/queue"
)

// Status is a snapshot of a worker.
type Status struct {
	Name  string // from [Options]
	Phase string // "not started", "running", "draining", "aborting" or "stopped"
	// Receiving is false if the gate is closed or the limiter's breaker is open; Reasons says why.
	Receiving bool
	Reasons   []Reason

	// Concurrency is the configured limit; Limit is lower for a while after an outage of the app.
	Concurrency, Limit int
	// InWork is the number of running deliveries, Polls the number of open receives. The other fields count messages:
	// Prefetched are waiting for a slot, Waiting are behind their FIFO group, Postponed wait for another delivery,
	// and Unconfirmed wait for a confirmed delete.
	InWork, Prefetched, Waiting, Postponed, Unconfirmed, Polls int

	Counts    Counts  // since the start of Run
	PerSecond float64 // settled messages, averaged over about 10 s
	// ServiceTime is the average duration of a delivery; 0 if unknown.
	ServiceTime time.Duration

	// Oldest is the age of the oldest held message. LongestWait is the longest time from sending a message to
	// starting its delivery in the last minute. Both are 0 if there are no messages.
	Oldest, LongestWait time.Duration
	// LongestDelivery is the age of the longest running delivery. LongestID and LongestGroup identify its message.
	LongestDelivery         time.Duration
	LongestID, LongestGroup string
	// Recent and RecentFailed count the settled and failed deliveries of the last five minutes.
	Recent, RecentFailed int64
	// Turns is the number of messages started in the last minute, TurnShare their fraction of the pool's messages, 0
	// to 1.
	Turns     int64
	TurnShare float64
	LimitedBy string     // the limiter's reason during a limited period
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
	// Received includes Duplicates, which are receives of messages already held or done.
	Received, Duplicates int64
	// Posted counts messages whose delivery started; Done, Failed, Unreached, Throttled and Postponed count results.
	// Aborted counts deliveries cancelled because Run was ending, Late those that ended after their visibility
	// timeout had expired.
	Posted, Done, Failed, Unreached, Throttled, Postponed, Aborted, Late int64
	// Deleted counts confirmed deletes, DeletesLost deletes that the worker gave up, and Expired messages past their
	// retention.
	Deleted, DeletesLost, Expired, Filtered int64
	// Returned counts unposted messages made visible again, VisibilityExpired visibility timeouts that expired while
	// their message was held.
	Extended, Returned, VisibilityExpired int64
	// EmptyPolls counts receives that returned no messages, FailedPolls those that failed.
	Polls, EmptyPolls, FailedPolls, DeleteCalls, ChangeCalls int64
	Promoted                                                 int64 // turns given out of order because of MaxWait
	Limited                                                  int64 // limited periods
	Stalls                                                   int64 // times the process did not run
}

type statistics struct {
	started   time.Time
	counts    Counts
	lastError *LastError

	recent         *window.Window[outcomes]
	perSecond      float64
	measured       time.Time
	settledAtStart int64 // settled messages at the time in measured
}

// outcomes counts deliveries that reached the app.
type outcomes struct{ settled, failed int64 }

// The window of outcomes is the one of the environment's health.
const (
	outcomeStep  = 10 * time.Second
	outcomeSteps = 30
)

func (t *statistics) settled(e *Settled, now time.Time) {
	t.counts.settled(e)
	if e.Outcome != queue.Done && e.Outcome != queue.Failed {
		return
	}
	if t.recent == nil {
		t.recent = window.New[outcomes](outcomeStep, outcomeSteps)
	}
	if b := t.recent.At(now); b != nil {
		b.settled++
		if e.Outcome == queue.Failed {
			b.failed++
		}
	}
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
