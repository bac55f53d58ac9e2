package worker

import (
	"cmp"
	"slices"
	"time"

	"tendril/queue"
)

// Worker polls a queue, delivers its messages and settles them. Its methods are safe for concurrent use.
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

	nextCheck time.Time
	drained   chan struct{}
}

// New returns a worker that is idle until [Worker.Run]. opts may be nil.
func New(q Queue, d Deliverer, opts *Options) *Worker {
	w := &Worker{queue: q, deliverer: d, pace: newPace(), drained: make(chan struct{})}
	o := opts.withDefaults()
	if batches, ok := d.(BatchDeliverer); ok {
		w.batches = batches
	} else {
		o.Batch = Batch{Size: 1}
	}

	w.core = newCore(o)
	w.messages = newInventory(w.core)
	w.gate = &gate{core: w.core}
	w.gate.reasons = []Reason{{Block: AppDown, Text: "the app has not responded yet", Since: time.Now()}}
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
		starts: newHistory(turnStep)}
	w.poller = &poller{core: w.core, messages: w.messages, gate: w.gate, limiter: w.limiter, deletes: w.deletes, pace: w.pace,
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

// proceed starts everything that is possible now. The caller must hold the lock.
func (w *Worker) proceed(now time.Time) {
	w.applyGate(now)
	w.startDeliveries(nil, now)
	w.flush(now)
	w.startReceives(now)
}

func (w *Worker) applyGate(now time.Time) {
	if w.gate.open() {
		return
	}
	if !w.gate.keepsMessages() {
		w.settler.returnUnposted(now)
	}
	cancelNext := w.poller.cancelWaiting(now)
	w.core.wakeAt(cancelNext)
}

func (w *Worker) checkClock(now time.Time) {
	if s := w.core.clock.tick(now); s.length() > 0 {
		w.recordStall(s)
	}
}

// The queue's clock kept running while the monotonic clock stood still.
func (w *Worker) recordStall(s stall) {
	for _, h := range w.messages.held {
		h.moveBack(s.hidden)
	}
	w.deletes.pending.moveBack(s.hidden)
	w.visibility.pending.moveBack(s.hidden)
	notify(w.core, w.core.events.Stalled, Stalled{For: s.length()})
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

// Gate sets whether the app is ready; reason explains why not. Unless Gate is called before [Worker.Run], the worker
// probes the app itself. Opening the gate ends an outage: deliveries resume one at a time.
func (w *Worker) Gate(open bool, reason string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	now := time.Now()
	w.app.setReady(open, reason, now)
	w.proceed(now)
}

// SetMaxReceives changes [Options].MaxReceives; 0 means unknown. Shortly after an increase, a message may be
// delivered after later ones of its group.
func (w *Worker) SetMaxReceives(n int) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.opts.MaxReceives = n
}

// SetFilter sets the filter of later receives: messages that do not match are deleted unposted. A nil match delivers
// all. match must be safe for concurrent use.
func (w *Worker) SetFilter(match func(*queue.Message) bool) { w.poller.filter.Store(&match) }

// Tuning has the [Options] that can change while a worker runs.
type Tuning struct {
	Concurrency            int
	VisibilityTimeout      time.Duration
	ErrorVisibilityTimeout *time.Duration
	Backoff                Backoff
	RespectRetryAfter      bool
	Retention              time.Duration
}

// Tune changes settings for all attempts that end later. Deliveries in flight finish even if Concurrency decreases.
// Messages keep the visibility timeout of their receive. A worker of a pool ignores Concurrency.
func (w *Worker) Tune(t *Tuning) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()

	o := &w.core.opts // other fields are read without the lock
	w.core.setVisibility(visibilityOf(t.VisibilityTimeout))
	o.ErrorVisibilityTimeout = t.ErrorVisibilityTimeout
	o.Backoff = t.Backoff
	o.RespectRetryAfter = t.RespectRetryAfter
	o.Retention = cmp.Or(t.Retention, defaultRetention)
	if w.lane == nil {
		w.core.setConcurrency(clamp(cmp.Or(t.Concurrency, defaultConcurrency), 1, maxConcurrency))
	}

	now := time.Now()
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
		Concurrency: w.core.opts.Concurrency,
		Limit:       w.core.limit,
		InWork:      w.core.inWork,
		Unconfirmed: w.deletes.unconfirmed,
		Counts:      w.core.counts,
		LastError:   w.core.stats.lastError,
		PerSecond:   w.core.stats.perSecond,
		ServiceTime: w.pace.service,
	}
	for b := range w.core.stats.recent.Recent(now) {
		s.Recent += b.settled
		s.RecentFailed += b.failed
	}

	w.messages.addStatus(&s, now)
	w.slots.addStatus(&s, now)
	if w.limiter != nil {
		w.limiter.addStatus(&s, now)
	}
	return s
}

// InWork returns the attempt number and start time of a message that is being delivered.
func (w *Worker) InWork(id string) (attempt int, since time.Time, ok bool) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	if h := w.messages.held[id]; h != nil && h.stage == posting {
		return h.msg.Attempt, h.startedAt, true
	}
	return 0, time.Time{}, false
}
