package worker

import (
	"math"
	"time"

	"tendril/internal/observe/window"
	"tendril/queue"
)

// Status is a snapshot of a worker.
type Status struct {
	Name  string
	Phase string // "not started", "running", "draining", "aborting" or "stopped"
	// Receiving is false if the gate is closed or the limiter's breaker is open; Reasons explains why.
	Receiving bool
	Reasons   []Reason

	// Limit is below Concurrency for a while after an outage or pause.
	Concurrency, Limit int
	// InWork counts deliveries in flight. The others count messages: Prefetched messages wait for a slot, Waiting ones
	// for earlier messages of their FIFO group, Postponed ones for their next delivery, and Unconfirmed ones for the
	// confirmation of their delete.
	InWork, Prefetched, Waiting, Postponed, Unconfirmed int

	Counts      Counts  // since the start of Run
	PerSecond   float64 // settled, averaged over about 10 s
	ServiceTime time.Duration

	// Oldest is the age of the oldest held message. LongestWait is the longest time from sending to delivery in the
	// last minute.
	Oldest, LongestWait time.Duration
	// LongestDelivery is the age of the oldest delivery in flight, of message LongestID in FIFO group LongestGroup.
	LongestDelivery         time.Duration
	LongestID, LongestGroup string
	// Recent counts deliveries in the last five minutes that were done or failed; RecentFailed, those that failed.
	Recent, RecentFailed int64
	// TurnShare is the share of the pool's messages started in the last minute, 0 to 1.
	TurnShare float64
	LimitedBy string     // "" outside limited periods
	LastError *LastError // may be nil
}

// LastError is a failed queue call.
type LastError struct {
	Action string // "receive", "delete", "dead-lettering" or "change of visibility"
	Err    error
}

// Counts are numbers of messages.
type Counts struct {
	// Received includes Duplicates.
	Received, Duplicates int64
	// Done to Postponed count results of deliveries. Aborted deliveries were canceled by the end of Run; Late ones
	// ended after their visibility timeout.
	Done, Failed, Unreached, Throttled, Postponed, Aborted, Late int64
	// DeletesLost counts deletes that were given up.
	Deleted, DeletesLost, Expired, Filtered int64
	// VisibilityExpired counts timeouts that expired while the message was held.
	Extended, Returned, VisibilityExpired int64
	Promoted                              int64 // turns out of order because of MaxWait
	Limited                               int64 // periods of refusals by the limiter
}

type statistics struct {
	started   time.Time
	lastError *LastError

	recent              *window.Window[outcomes]
	perSecond           float64
	measuredAt          time.Time
	settledWhenMeasured int64
}

type outcomes struct{ settled, failed int64 }

// The product must equal the window in package health.
const (
	outcomeStep  = 10 * time.Second
	outcomeSteps = 30
)

func (t *statistics) recordOutcome(o queue.Outcome, now time.Time) {
	if o != queue.Done && o != queue.Failed {
		return
	}
	if t.recent == nil {
		t.recent = window.New[outcomes](outcomeStep, outcomeSteps)
	}
	if b := t.recent.At(now); b != nil {
		b.settled++
		if o == queue.Failed {
			b.failed++
		}
	}
}

func (t *statistics) recordFailedCall(action string, err error) {
	t.lastError = &LastError{Action: action, Err: err}
}

func (c *Counts) attempts() int64 { return c.Done + c.Failed + c.Unreached + c.Throttled }

func (c *Counts) countAttempt(e *Settled) {
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

// rateWindow is the time constant of perSecond, in seconds.
const rateWindow = 10

func (t *statistics) measureRate(settled int64, now time.Time) {
	seconds := now.Sub(t.measuredAt).Seconds()
	if !t.measuredAt.IsZero() && seconds > 0 {
		rate := float64(settled-t.settledWhenMeasured) / seconds
		t.perSecond += (rate - t.perSecond) * (1 - math.Exp(-seconds/rateWindow))
	}
	t.measuredAt, t.settledWhenMeasured = now, settled
}
