package periodic

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

const (
	checkInterval = time.Second
	firstRetry    = time.Second
	longestRetry  = 30 * time.Second
)

// Options configure a scheduler. The zero value is valid.
type Options struct {
	// Queue is the default queue's name, URL or ARN.
	Queue       string
	CallTimeout time.Duration // 0 means 10 s
	Concurrency int           // registry calls; 0 means 16
	History     int           // number of runs; 0 means 1000
	// Running reports whether a task's previous run is unfinished. It is called with a lock held, so it must not block,
	// and may call only the scheduler's History.
	Running func(Task) bool
	// RunningElsewhere reports whether another instance is running a task with "overlap: skip". After an error, the run
	// is tried again.
	RunningElsewhere func(ctx context.Context, task string) (bool, error)
	Paused           []string
	// Past is the history of an earlier scheduler, oldest first.
	Past   []Run
	Wall   func() time.Time // default [time.Now]
	Events Events
}

func (o Options) complete() Options {
	o.CallTimeout = cmp.Or(o.CallTimeout, 10*time.Second)
	o.Concurrency = cmp.Or(o.Concurrency, 16)
	o.History = cmp.Or(o.History, 1000)
	if o.Running == nil {
		o.Running = func(Task) bool { return false }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	return o
}

// Scheduler enqueues the runs of tasks while its instance leads. It is safe for concurrent use.
type Scheduler struct {
	lead        Leadership
	registry    Registry
	opts        Options
	history     history
	wakeup      chan struct{}
	work        sync.WaitGroup
	refusedTerm atomic.Int64

	mu      sync.Mutex
	entries []*entry
	paused  map[string]bool
	// term is 0 while this instance does not lead.
	term            int64
	requesting      bool
	nextRequest     time.Time // monotonic
	requestFailures int       // consecutive failures
	busy            int
	wall, mono      time.Time // at the last check
}

type entry struct {
	task Task
	// from is when this instance first saw the schedule, changed when a reload added the task or changed its schedule.
	// Times before changed are not due. Setting the clock back adjusts both.
	from, changed time.Time
	// accountedUpTo is valid if timesKnown is set. next is the first slot after it, or zero if that is not planned yet.
	accountedUpTo time.Time
	timesKnown    bool
	next          Slot
	busy          bool
	// Nothing is tried before retryAt, which is monotonic.
	failures int
	retryAt  time.Time
	problem  string
}

// New returns a scheduler, started by [Scheduler.Run]. file may be nil.
func New(file *File, lead Leadership, runs Registry, opts Options) *Scheduler {
	opts = opts.complete()
	s := &Scheduler{
		lead: lead, registry: runs, opts: opts, wakeup: make(chan struct{}, 1),
		paused: map[string]bool{}, history: history{maxRuns: opts.History},
	}
	for _, r := range opts.Past {
		s.history.push(r)
	}
	for _, name := range opts.Paused {
		s.paused[name] = true
	}
	s.replaceTasks(file, time.Time{}) // zero, so that runs missed while no process was running are caught up
	return s
}

// Run enqueues due runs while this instance leads, until ctx ends. It then waits for calls in progress.
func (s *Scheduler) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		changed := s.lead.Changed()
		timer.Reset(s.round(ctx))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-s.wakeup:
		case <-timer.C:
		}
	}
	s.work.Wait()
	return nil
}

func (s *Scheduler) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

func (s *Scheduler) round(ctx context.Context) time.Duration {
	now, mono := s.opts.Wall().Round(0), time.Now()
	s.checkClocks(now, mono)
	term, leads := s.lead.Term()
	if !leads {
		term = 0
	}

	s.mu.Lock()
	termStarted := s.setTerm(term)
	wait := checkInterval
	if term > 0 {
		s.requestTimes(ctx, mono)
		for _, e := range s.entries {
			s.advance(ctx, e, now, mono)
			wait = min(wait, e.untilNextCheck(now, mono))
		}
	}
	s.mu.Unlock()

	if termStarted {
		call(s.opts.Events.Led, Led{term})
	}
	return wait
}

// Only [Scheduler.Run] calls checkClocks.
func (s *Scheduler) checkClocks(now, mono time.Time) {
	if by := now.Sub(s.wall) - mono.Sub(s.mono); !s.wall.IsZero() && by.Abs() > time.Second {
		s.replan(now.Add(s.mono.Sub(mono))) // the earliest time shown since the last check
		call(s.opts.Events.ClockStepped, ClockStepped{By: by})
	}
	s.wall, s.mono = now, mono
}

// The caller must hold mu.
func (s *Scheduler) setTerm(term int64) (started bool) {
	if term == s.term {
		return false
	}
	s.term = term
	s.requestFailures = 0
	s.nextRequest = time.Time{}
	for _, e := range s.entries {
		e.timesKnown = false
		e.clearFailures()
	}
	return term != 0
}

func (e *entry) untilNextCheck(now, mono time.Time) time.Duration {
	switch {
	case !e.timesKnown || e.busy:
		return checkInterval
	case mono.Before(e.retryAt):
		return e.retryAt.Sub(mono)
	case e.next.DueAt.IsZero():
		return checkInterval
	}
	return max(e.next.DueAt.Sub(now), time.Millisecond)
}

// replan moves the tasks' starts back to the earliest time shown when the clock was set, so that runs missed after
// correcting a fast clock are caught up.
func (s *Scheduler) replan(earliest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		e.next = Slot{}
		if e.from.After(earliest) {
			e.from = earliest
			e.timesKnown = false
		}
		if e.changed.After(earliest) {
			e.changed = earliest
		}
	}
}

// The caller must hold mu.
func (s *Scheduler) requestTimes(ctx context.Context, mono time.Time) {
	if s.requesting || mono.Before(s.nextRequest) {
		return
	}
	starts := map[string]registry.Start{}
	for _, e := range s.entries {
		if !e.timesKnown {
			starts[e.task.Name] = e.start()
		}
	}
	if len(starts) == 0 {
		return
	}

	s.requesting = true
	term := s.term
	s.call(ctx, func(ctx context.Context) {
		known, err := s.registry.Since(ctx, term, starts)
		s.receiveTimes(term, starts, known, err)
	})
}

func (s *Scheduler) receiveTimes(term int64, starts map[string]registry.Start, known map[string]queue.TaskTimes,
	err error) {
	s.mu.Lock()
	s.requesting = false
	if term != s.term {
		s.mu.Unlock()
		s.wake()
		return
	}
	var retry time.Duration
	if err != nil {
		retry = backoff(s.requestFailures)
		s.requestFailures++
		s.nextRequest = time.Now().Add(retry)
	} else {
		s.requestFailures = 0
		s.adoptTimes(starts, known)
	}
	s.mu.Unlock()

	s.wake()
	if err != nil {
		call(s.opts.Events.Failed, Failed{Err: fmt.Errorf("reading when tasks were last enqueued: %w", err), Retry: retry})
	}
}

// The caller must hold mu.
func (s *Scheduler) adoptTimes(starts map[string]registry.Start, known map[string]queue.TaskTimes) {
	now := s.opts.Wall().Round(0)
	for _, e := range s.entries {
		if e.timesKnown || starts[e.task.Name] != e.start() {
			continue
		}
		times, ok := known[e.task.Name]
		if !ok {
			times = queue.TaskTimes{UpTo: e.from, From: e.from}
		}
		e.adoptTimes(times, now)
	}
}

func (e *entry) start() registry.Start {
	return registry.Start{At: e.from, Schedule: e.task.Schedule.String() + " " + e.task.Schedule.Zone().String()}
}

// adoptTimes does not trust a recorded time in the future, which may hide missed runs: it plans the longest period that
// can be caught up again. The registry recognizes enqueued runs.
func (e *entry) adoptTimes(times queue.TaskTimes, now time.Time) {
	upTo := times.UpTo
	if upTo.Sub(now) > time.Second {
		upTo = later(now.Add(-e.task.grace()-e.task.Jitter), times.From)
	}
	e.timesKnown = true
	e.setAccountedUpTo(later(upTo, e.changed))
}

func (e *entry) setAccountedUpTo(at time.Time) {
	e.accountedUpTo = at
	e.next = Slot{}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// advance skips missed runs, or otherwise enqueues the first due run, unless a pause or overlap skips the due ones. The
// caller must hold mu.
func (s *Scheduler) advance(ctx context.Context, e *entry, now, mono time.Time) {
	if !e.timesKnown || e.busy {
		return
	}
	if e.accountedUpTo.Sub(now) > time.Second {
		// The clock was set back. The margin covers the time between two checks; the registry recognizes repeated runs.
		e.setAccountedUpTo(now.Add(-punctual))
	}

	if mono.Before(e.retryAt) || now.Before(e.next.DueAt) {
		return
	}

	p := e.task.Plan(e.accountedUpTo, now)
	if len(p.Passed)+len(p.Enqueue) == 0 {
		e.next = p.Next
		return
	}

	e.next = Slot{}
	switch {
	case s.busy >= s.opts.Concurrency: // the end of a call wakes the loop
	case len(p.Passed) > 0: // the registry knows which were enqueued
		s.startAttempt(ctx, e, p.Passed, ReasonMissed)
	case s.paused[e.task.Name]:
		s.startAttempt(ctx, e, p.Enqueue, ReasonPaused)
	case e.task.Overlap == SkipOverlap && s.opts.Running(e.task):
		s.startAttempt(ctx, e, p.Enqueue, ReasonOverlap)
	default:
		s.startAttempt(ctx, e, p.Enqueue[:1], "")
	}
}
