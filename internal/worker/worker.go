package worker

import (
	"cmp"
	"slices"
	"time"

	"tendril/queue"
)

// Worker polls one queue, delivers its messages and settles them. Its methods are safe for concurrent use.
type Worker struct {
	core       *core
	queue      Queue
	deliverer  Deliverer
	batches    BatchDeliverer // nil for single messages
	messages   *inventory
	gate       *gate
	app        *appMonitor
	limiter    *limiterState // may be nil
	poller     *poller
	slots      *slots
	settler    *settler
	deletes    *deleter
	letters    *deadLetters
	visibility *visibilityChanger
	lane       *lane // nil without a pool
	pace       *pace

	nextRound time.Time
	drained   chan struct{}
}

// New returns a worker that is idle until [Worker.Run] is called. opts may be nil.
func New(q Queue, d Deliverer, opts *Options) *Worker {
	w := &Worker{queue: q, deliverer: d, pace: newPace(), drained: make(chan struct{})}
	o := opts.settled()
	if batches, ok := d.(BatchDeliverer); ok {
		w.batches = batches
	} else {
		o.Batch = Batch{Size: 1}
	}

	w.core = newCore(o)
	w.messages = newInventory(w.core)
	w.gate = &gate{core: w.core}
	w.gate.reasons = []Reason{{Block: AppDown, Text: "the app has not answered yet", Since: time.Now()}}
	w.app = &appMonitor{core: w.core, gate: w.gate, app: d}
	if o.Limiter != nil {
		w.limiter = &limiterState{shared: &sharedLimiter{limiter: o.Limiter}, core: w.core, pace: w.pace}
	}

	w.visibility = &visibilityChanger{core: w.core, messages: w.messages}
	w.deletes = &deleter{core: w.core, messages: w.messages, gate: w.gate, visibility: w.visibility, pace: w.pace}
	w.letters = &deadLetters{core: w.core, deletes: w.deletes, visibility: w.visibility}
	w.letters.to, _ = q.(DeadLetterer)
	w.letters.pending.serial = o.FIFO
	w.settler = &settler{core: w.core, messages: w.messages, gate: w.gate, app: w.app, deletes: w.deletes,
		letters: w.letters, visibility: w.visibility, pace: w.pace}
	w.slots = &slots{core: w.core, messages: w.messages, gate: w.gate, limiter: w.limiter, settler: w.settler, pace: w.pace,
		turns: newHistory(turnStep)}
	w.poller = &poller{core: w.core, messages: w.messages, gate: w.gate, limiter: w.limiter, pace: w.pace,
		want: 1, open: make(map[*openReceive]struct{})}
	if o.Pool != nil {
		w.lane = &lane{worker: w, pool: o.Pool, core: w.core, messages: w.messages, gate: w.gate, limiter: w.limiter,
			poller: w.poller, slots: w.slots, deletes: w.deletes, pace: w.pace, weight: max(o.Weight, 1)}
		w.poller.lane = w.lane
		w.slots.lane = w.lane
		o.Pool.join(w.lane)
	}
	return w
}

// proceed starts everything that is possible now, at the end of every step that holds the lock.
func (w *Worker) proceed(now time.Time) {
	w.obeyGate(now)
	w.startDeliveries(nil, now)
	w.flush(now)
	w.startReceives(now)
}

// obeyGate cancels waiting receives and, unless only throttling closed the gate, returns unposted messages.
func (w *Worker) obeyGate(now time.Time) {
	if w.gate.open() {
		return
	}
	if !w.gate.keeping() {
		w.settler.withdraw(now)
	}
	w.core.wakeAt(w.poller.cancelWaiting(now))
}

func (w *Worker) observe(now time.Time) {
	if gap, hidden := w.core.clock.tick(now); gap > 0 {
		w.stalled(gap, hidden)
	}
}

func (w *Worker) stalled(gap, hidden time.Duration) {
	for _, h := range w.messages.held {
		h.shift(hidden)
	}
	w.deletes.pending.shift(hidden)
	w.visibility.pending.shift(hidden)
	notify(w.core, w.core.events.Stalled, Stalled{For: gap})
}

// Pause stops receiving until [Worker.Resume] and returns unposted messages. Deliveries in flight continue. A second
// call replaces the reason.
func (w *Worker) Pause(reason string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	now := time.Now()
	w.gate.close(Paused, reason, now)
	w.proceed(now)
}

// Resume reverses [Worker.Pause].
func (w *Worker) Resume() {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.gate.lift(Paused)
	w.proceed(time.Now())
}

// Gate sets whether the app is ready; reason explains why it is not. If Gate is not called before [Worker.Run], the
// worker probes the app itself. Opening the gate ends an outage: deliveries resume one at a time.
func (w *Worker) Gate(open bool, reason string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	now := time.Now()
	w.app.setReady(open, reason, now)
	w.proceed(now)
}

// SetMaxReceives changes [Options].MaxReceives; 0 means unknown. Shortly after an increase, a message may be delivered
// after later messages of its group.
func (w *Worker) SetMaxReceives(n int) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.opts.MaxReceives = n
}

// SetFilter applies to later receives: messages that do not match are deleted unposted. A nil match delivers all. match
// must be safe for concurrent use.
func (w *Worker) SetFilter(match func(*queue.Message) bool) { w.poller.filter.Store(&match) }

// Tuning contains the [Options] that can change while a worker runs.
type Tuning struct {
	Concurrency            int
	VisibilityTimeout      time.Duration
	ErrorVisibilityTimeout *time.Duration
	Backoff                Backoff
	RespectRetryAfter      bool
	Retention              time.Duration
}

// Tune applies to attempts that end from now on. Deliveries in flight finish even if concurrency decreases. Messages
// keep the visibility timeout of their receive. A worker of a pool ignores Concurrency.
func (w *Worker) Tune(t *Tuning) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	now := time.Now()
	o := &w.core.opts // other fields are read without the lock
	w.core.setVisibility(visibilityOf(t.VisibilityTimeout))
	o.ErrorVisibilityTimeout = t.ErrorVisibilityTimeout
	o.Backoff = t.Backoff
	o.RespectRetryAfter = t.RespectRetryAfter
	o.Retention = cmp.Or(t.Retention, defaultRetention)
	if w.lane == nil {
		full := w.core.limit == o.Concurrency
		o.Concurrency = clamp(cmp.Or(t.Concurrency, defaultConcurrency), 1, maxConcurrency)
		if full {
			w.core.limit = o.Concurrency
		}
	}

	w.core.limit = min(w.core.limit, o.Concurrency)
	w.startDeliveries(nil, now)
	w.core.wakeAt(now)
}

// Status returns a snapshot of the worker.
func (w *Worker) Status() Status {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	now := time.Now()
	s := Status{
		Name:        w.core.opts.Name,
		Phase:       [...]string{"not started", "running", "draining", "aborting", "stopped"}[w.core.phase],
		Receiving:   w.core.phase == running && w.gate.open(),
		Reasons:     slices.Clone(w.gate.reasons),
		Concurrency: w.core.opts.Concurrency, Limit: w.core.limit,
		InWork: w.core.inWork, Prefetched: w.messages.ready.len(), Postponed: w.messages.deferred.Len(),
		Unconfirmed: w.messages.unconfirmed, Polls: len(w.poller.open),
		Counts: w.core.stats.counts, LastError: w.core.stats.lastError,
		PerSecond: w.core.stats.perSecond, ServiceTime: w.pace.service,
	}

	for _, g := range w.messages.groups {
		s.Waiting += len(g.waiting)
	}
	for _, h := range w.messages.held {
		if h.stage != deleting {
			s.Oldest = max(s.Oldest, now.Round(0).Sub(h.msg.SentAt))
		}
		if took := now.Sub(h.startedAt); h.stage == posting && took >= s.LongestDelivery {
			s.LongestDelivery = took
			s.LongestID = h.msg.ID
			if w.core.opts.FIFO { // a group blocks messages only on FIFO queues
				s.LongestGroup = h.msg.GroupID
			}
		}
	}
	for b := range w.core.stats.recent.Recent(now) {
		s.Recent, s.RecentFailed = s.Recent+b.settled, s.RecentFailed+b.failed
	}

	turns := w.slots.turns.sum(now)
	s.Turns = turns.count
	s.LongestWait = turns.most
	all := s.Turns
	if w.lane != nil {
		all = w.lane.pool.begun.sum(now).count
	}
	if all > 0 {
		s.TurnShare = float64(s.Turns) / float64(all)
	}

	w.statusOfLimiter(&s, now)
	return s
}

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
		s.Reasons = append(s.Reasons, Reason{Block: BreakerOpen, Text: "the breaker is open", Since: since})
	}
}

// InWork describes the attempt of a message that is being delivered.
func (w *Worker) InWork(id string) (attempt int, since time.Time, ok bool) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if h := w.messages.held[id]; h != nil && h.stage == posting {
		return h.attempt, h.startedAt, true
	}
	return 0, time.Time{}, false
}
