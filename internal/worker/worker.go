package worker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tendril/queue"
)

// Worker polls one queue, delivers each message and settles it. Make one with
// [New] and run it once with [Worker.Run]; every method may be called at any
// time from any goroutine.
type Worker struct {
	*core
	messages   *inventory
	gate       *gate
	app        *appMonitor
	limiter    *limiterState // nil for none
	visibility *visibilityChanger
	deletes    *deleter
	letters    *deadLetters // nil where the queue cannot dead-letter a message itself
	settler    *settler
	poller     *poller
	slots      *slots
	lane       *lane // of the pool; nil for a worker of its own
	pace       *pace

	nextRound time.Time     // when it looks after what is held
	drained   chan struct{} // closed when a drain is over
}

// New returns a worker that takes messages from q and delivers them with d. It does
// nothing until [Worker.Run]. opts may be nil.
func New(q Queue, d Deliverer, opts *Options) *Worker {
	o := opts.settled()
	batchApp, isBatch := d.(BatchDeliverer)
	if !isBatch {
		o.Batch = Batch{Size: 1}
	}
	rhythm := clamp(o.VisibilityTimeout/16, 50*time.Millisecond, time.Second)
	c := &core{opts: o, events: o.Events, mu: &callbackMutex{}, limit: o.Concurrency, wake: make(chan struct{}, 1),
		clock: clock{rhythm: rhythm}, margin: min(o.VisibilityTimeout/10, time.Second)}
	c.callCtx, c.endCalls = context.WithCancel(context.Background())
	if o.Pool != nil {
		c.mu = &o.Pool.mu
	}
	p := &pace{}
	m := &inventory{core: c, held: make(map[string]*held), groups: make(map[string]*group),
		failing: make(map[string]failingGroup),
		done:    newMemory[struct{}](remembered), unposted: newMemory[int](remembered)}
	var limiter *limiterState
	if o.Limiter != nil {
		limiter = &limiterState{sharedLimiter: &sharedLimiter{limiter: o.Limiter}, core: c, pace: p}
	}
	g := &gate{core: c, reasons: []Reason{{Block: AppDown, Text: "the app has not answered yet", Since: time.Now()}}}
	app := &appMonitor{core: c, gate: g, app: d}
	poll := &poller{core: c, queue: q, messages: m, gate: g, limiter: limiter, pace: p,
		openReceives: openReceives{want: 1, open: make(map[*openReceive]struct{})}}
	visible := &visibilityChanger{core: c, queue: q, messages: m, gate: g, receives: func() int { return len(poll.open) }}
	deletes := &deleter{core: c, queue: q, messages: m, gate: g, visibility: visible, pace: p}
	letters := newDeadLetters(c, q, deletes)
	s := &settler{core: c, messages: m, gate: g, app: app, deletes: deletes, letters: letters, visibility: visible,
		pace: p}
	sl := &slots{core: c, app: d, batchApp: batchApp, messages: m, gate: g, limiter: limiter, settler: s, pace: p}
	w := &Worker{core: c, messages: m, gate: g, app: app, limiter: limiter, visibility: visible, deletes: deletes,
		letters: letters, settler: s, poller: poll, slots: sl, pace: p, drained: make(chan struct{})}
	poll.accept = s.accept
	g.closed = w.gateClosed
	c.start, c.receive, c.stalled = w.start, w.receive, w.stalled
	if o.Pool != nil {
		w.lane = &lane{core: c, pool: o.Pool, messages: m, gate: g, limiter: limiter, poller: poll, slots: sl,
			settler: s, pace: p, weight: max(o.Weight, 1)}
		poll.lane, sl.lane = w.lane, w.lane
		o.Pool.join(w.lane)
	}
	return w
}

// start begins the deliveries and calls of the queue that may begin now.
func (w *Worker) start(now time.Time) {
	w.slots.startAll(nil, now)
	w.letters.flush(now)
	w.deletes.flush(now)
	w.visibility.flush(now)
}

// receive begins as many receives as may begin now, also those of the other
// workers of the pool.
func (w *Worker) receive(now time.Time) {
	if w.lane != nil {
		w.lane.pool.poll(now)
	} else {
		w.poller.begin(now)
	}
	if w.phase == draining || w.phase == aborting {
		w.checkDrained()
	}
}

// gateClosed withdraws what is not in work yet when the gate closes.
func (w *Worker) gateClosed(wasOpen, wasKeeping bool, now time.Time) {
	if wasKeeping && !w.gate.keeping() {
		w.settler.withdraw(now)
	}
	if wasOpen {
		w.wakeAt(w.poller.cancelWaiting(now))
	}
}

// Pause stops receiving until [Worker.Resume]. Deliveries in work go on; what
// was received and not posted yet is returned. A second call replaces the
// reason.
func (w *Worker) Pause(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.gate.close(Paused, reason, now, now)
	w.proceed(now)
}

// Resume takes back [Worker.Pause].
func (w *Worker) Resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate.lift(Paused, time.Now())
}

// Gate tells the worker whether the app is ready. Until it is closed for the
// first time the worker finds out itself, by [Deliverer] Probe. An open gate
// also ends the probing after refused connections; after such an outage the
// worker begins with one delivery at a time. reason says why it is closed and
// is not used when it opens.
func (w *Worker) Gate(open bool, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.app.setReady(open, reason, now)
	w.proceed(now)
}

// SetMaxReceives changes [Options].MaxReceives while the worker runs; 0 when it
// is not known any more. What was raised a moment ago may let a message come
// again behind those that went on without it.
func (w *Worker) SetMaxReceives(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opts.MaxReceives = n
}

// SetFilter has the worker delete the messages for which match returns false, unposted, from the next receive on; nil
// delivers all. It may be called before [Worker.Run]. match is called for each message of each receive, from several
// goroutines at once.
func (w *Worker) SetFilter(match func(*queue.Message) bool) { w.poller.filter.Store(&match) }

// Tuning is what may be changed while a worker runs. Its fields mean what those of
// [Options] mean.
type Tuning struct {
	Concurrency            int
	ErrorVisibilityTimeout *time.Duration
	Backoff                Backoff
	RespectRetryAfter      bool
	Retention              time.Duration
}

// Tune changes the worker from now on: for every attempt that ends later, also one
// that has begun. With less concurrency what is in work finishes first. In a pool the
// concurrency stays.
func (w *Worker) Tune(t *Tuning) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	o := &w.opts // field by field: others are read without the lock
	o.ErrorVisibilityTimeout, o.Backoff, o.RespectRetryAfter, o.Retention = t.ErrorVisibilityTimeout, t.Backoff,
		t.RespectRetryAfter, cmp.Or(t.Retention, defaultRetention)
	if w.lane == nil {
		full := w.limit == o.Concurrency
		if o.Concurrency = clamp(cmp.Or(t.Concurrency, defaultConcurrency), 1, maxConcurrency); full {
			w.limit = o.Concurrency
		}
	}
	w.limit = min(w.limit, o.Concurrency)
	w.slots.startAll(nil, now)
	w.wakeAt(now)
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
