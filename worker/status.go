package worker

import (
	"math"
	"slices"
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

	// Oldest is how long ago the oldest message in hand that is not done was
	// sent; LongestWait the longest time from the sending of a message to its
	// delivery, of those begun in the last minute; 0 when there are none.
	Oldest, LongestWait time.Duration
	// Turns is how many messages began in the last minute; TurnShare the share,
	// 0 to 1, that they are of all that the pool began. It is 1 without a pool,
	// and 0 when nothing began.
	Turns     int64
	TurnShare float64
	// LimitedBy is the limiter's reason as long as it keeps messages back, ""
	// when it does not.
	LimitedBy string

	// LastError is the latest trouble with the queue; nil when there was none.
	LastError *LastError
}

// LastError is one failure of a call of the queue.
type LastError struct {
	At time.Time
	// Action is "receive", "delete" or "change of visibility".
	Action string
	Err    error
}

// Counts are numbers of messages, and of calls where the name says so.
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
	// Polls counts the calls of Receive, EmptyPolls and FailedPolls those that
	// brought nothing; DeleteCalls and ChangeCalls count the other two calls.
	Polls, EmptyPolls, FailedPolls, DeleteCalls, ChangeCalls int64
	// Promoted counts the turns that MaxWait gave this queue ahead of the order.
	Promoted int64
	// Limited counts the times in which the limiter kept messages back.
	Limited int64
	// Stalls counts how often the process stood still.
	Stalls int64
}

// Status returns a snapshot.
func (w *Worker) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	s := Status{
		Name:        w.opts.Name,
		Phase:       [...]string{"not started", "running", "draining", "aborting", "stopped"}[w.phase],
		Started:     w.stats.started,
		Receiving:   w.phase == running && w.gate.open(),
		Reasons:     slices.Clone(w.gate.reasons),
		Concurrency: w.opts.Concurrency, Limit: w.limit,
		InWork: w.inWork, Prefetched: w.messages.ready.len(), Postponed: w.messages.deferred.Len(),
		Unconfirmed: w.messages.unconfirmed, Polls: len(w.poller.open),
		Counts: w.stats.counts, LastError: w.stats.lastError,
		PerSecond: w.stats.perSecond, ServiceTime: w.pace.service, RoundTrip: w.pace.roundTrip,
	}
	for _, g := range w.messages.groups {
		s.Waiting += len(g.waiting)
	}
	for _, h := range w.messages.held {
		if h.stage != deleting {
			s.Oldest = max(s.Oldest, now.Round(0).Sub(h.msg.SentAt))
		}
	}
	s.Turns, s.LongestWait = w.slots.turns.sum(now)
	all := s.Turns
	if w.lane != nil {
		all, _ = w.lane.pool.begun.sum(now)
	}
	if all > 0 {
		s.TurnShare = float64(s.Turns) / float64(all)
	}
	w.statusOfLimiter(&s, now)
	return s
}

// statusOfLimiter adds what the limiter does.
func (w *Worker) statusOfLimiter(s *Status, now time.Time) {
	l := w.limiter
	if l == nil {
		return
	}
	s.Counts.Limited = l.periods
	if l.limiting {
		s.LimitedBy = l.reason
	}
	if l.breakerOpen(now) {
		since := now
		if s.LimitedBy == breakerReason {
			since = l.since
		}
		s.Receiving, s.LimitedBy = false, breakerReason
		s.Reasons = append(s.Reasons, Reason{Block: BreakerOpen, Text: "the breaker lets no delivery begin", Since: since})
	}
}

// InWork returns which attempt at a message the app works on now, and since when;
// false when it works on none.
func (w *Worker) InWork(id string) (attempt int, since time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.messages.held[id]; h != nil && h.stage == posting {
		return h.attempt, h.startedAt, true
	}
	return 0, time.Time{}, false
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
