package worker

import (
	"slices"
	"time"
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
