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
	// look is how often a leader compares the time of day with its plan.
	look = time.Second
	// firstRetry and longestRetry bound the pause after a failure.
	firstRetry   = time.Second
	longestRetry = 30 * time.Second
)

// Options are a scheduler's settings. The zero value works.
type Options struct {
	// Queue is where tasks without a queue of their own go, a name, URL or ARN.
	Queue       string
	CallTimeout time.Duration // of each call of the registry; 0 means 10 s
	Concurrency int           // how many tasks are enqueued at once; 0 means 16
	History     int           // how many runs are remembered; 0 means 1000
	// Running reports whether the previous run of a task is unfinished; nil
	// means that none ever is, so that "overlap: skip" skips nothing. It must
	// not block, and must not call the scheduler.
	Running func(Task) bool
	// RunningElsewhere reports whether another instance works on a run of a task
	// with "overlap: skip"; nil means that none ever does. It may block, until ctx
	// ends. After an error the run is tried again.
	RunningElsewhere func(ctx context.Context, task string) (bool, error)
	// Paused are the names of tasks that are paused from the start.
	Paused []string
	// Past are runs of an earlier scheduler that are remembered, the oldest first.
	Past   []Run
	Wall   func() time.Time // the time of day; nil means [time.Now]
	Events Events           // the listeners
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

// Scheduler enqueues the runs of tasks while its instance leads. All methods
// may be called at any time, by any goroutine.
type Scheduler struct {
	lead     Leadership
	registry Registry
	opts     Options
	history  history
	// poke wakes the loop; it holds 1.
	poke chan struct{}
	work sync.WaitGroup
	// refusedTerm is the last term that the registry refused while it was ours.
	refusedTerm atomic.Int64

	mu      sync.Mutex
	entries []*entry // in the order of the file
	held    map[string]bool
	// term is the one whose entries are being known; 0 when not leading.
	term    int64
	asking  bool
	askNext time.Time // monotonic
	asked   int       // failures in a row
	busy    int
	// wall and mono are the clocks at the last look; zero before the first.
	wall, mono time.Time
}

// entry is one task and where it stands.
type entry struct {
	task Task
	// from is when this instance first knew the task with its schedule; changed
	// is when a reload brought it or its schedule, zero for never. Nothing before
	// that is due. Both are the earliest by a clock that was set back since.
	from, changed time.Time
	// since is up to when its times are accounted for; valid when known.
	since time.Time
	known bool
	next  Slot
	busy  bool
	// failures in a row; nothing is tried before retryAt, a monotonic time.
	failures int
	retryAt  time.Time
	problem  string // the last failure; "" after a success
}

// New returns a scheduler of the tasks of file, which may be nil.
// [Scheduler.Run] starts it.
func New(file *File, lead Leadership, runs Registry, opts Options) *Scheduler {
	opts = opts.complete()
	s := &Scheduler{
		lead: lead, registry: runs, opts: opts, poke: make(chan struct{}, 1),
		held: map[string]bool{}, history: history{most: opts.History},
	}
	for _, r := range opts.Past {
		s.history.push(r)
	}
	for _, name := range opts.Paused {
		s.held[name] = true
	}
	s.swap(file, time.Time{}) // runs missed while no process ran are made up for
	return s
}

// Run enqueues due runs, whenever this instance leads, until ctx ends. It then
// starts nothing more, waits for the calls under way, each of which ends
// within CallTimeout, and returns nil.
func (s *Scheduler) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		changed := s.lead.Changed()
		timer.Reset(s.round(ctx))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-s.poke:
		case <-timer.C:
		}
	}
	s.work.Wait()
	return nil
}

func (s *Scheduler) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// round begins all that can be begun now and returns when to look again.
func (s *Scheduler) round(ctx context.Context) time.Duration {
	now, mono := s.opts.Wall().Round(0), time.Now()
	if by := now.Sub(s.wall) - mono.Sub(s.mono); !s.wall.IsZero() && by.Abs() > time.Second {
		s.replan(now.Add(s.mono.Sub(mono))) // the earliest that the clock can have shown since
		call(s.opts.Events.ClockStepped, ClockStepped{By: by})
	}
	s.wall, s.mono = now, mono
	term, ok := s.lead.Term()

	var led *Led
	s.mu.Lock()
	if !ok {
		s.term = 0
	} else if term != s.term {
		s.term, s.asked, s.askNext = term, 0, time.Time{}
		for _, e := range s.entries {
			e.known, e.failures, e.retryAt, e.problem = false, 0, time.Time{}, ""
		}
		led = &Led{term}
	}
	wait := look
	if s.term > 0 {
		s.ask(ctx, mono)
		for _, e := range s.entries {
			s.advance(ctx, e, now, mono)
			wait = min(wait, e.pause(now, mono))
		}
	}
	s.mu.Unlock()
	if led != nil {
		call(s.opts.Events.Led, *led)
	}
	return wait
}

// pause is when to look at a task again.
func (e *entry) pause(now, mono time.Time) time.Duration {
	switch {
	case !e.known || e.busy:
		return look
	case mono.Before(e.retryAt):
		return e.retryAt.Sub(mono)
	case e.next.DueAt.IsZero():
		return look
	}
	return max(e.next.DueAt.Sub(now), time.Millisecond)
}

// replan discards plans made by a clock that has been set since. A task exists
// from the earliest time that the clock showed, also for the registry, so that what
// is missed after a clock that ran ahead was set back is made up for.
func (s *Scheduler) replan(earliest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		e.next = Slot{}
		if e.from.After(earliest) {
			e.from, e.known = earliest, false
		}
		if e.changed.After(earliest) {
			e.changed = earliest
		}
	}
}

// ask reads from the registry since when the tasks that are not known in this
// term count. Called with the lock held.
func (s *Scheduler) ask(ctx context.Context, mono time.Time) {
	starts := map[string]registry.Start{}
	for _, e := range s.entries {
		if !e.known {
			starts[e.task.Name] = e.start()
		}
	}
	if len(starts) == 0 || s.asking || mono.Before(s.askNext) {
		return
	}
	s.asking = true
	term := s.term
	s.call(ctx, func(ctx context.Context) {
		known, err := s.registry.Since(ctx, term, starts)
		s.answered(term, starts, known, err)
	})
}

// answered takes the registry's answer to ask.
func (s *Scheduler) answered(term int64, starts map[string]registry.Start, known map[string]queue.TaskTimes, err error) {
	var failed *Failed
	s.mu.Lock()
	s.asking = false
	switch {
	case term != s.term:
	case err != nil:
		failed = &Failed{Err: fmt.Errorf("reading up to when tasks were enqueued: %w", err), Retry: backoff(s.asked)}
		s.asked++
		s.askNext = time.Now().Add(failed.Retry)
	default:
		s.asked = 0
		for _, e := range s.entries {
			if e.known || starts[e.task.Name] != e.start() {
				continue // not asked for, or the schedule changed meanwhile
			}
			times, ok := known[e.task.Name]
			if !ok {
				times = queue.TaskTimes{UpTo: e.from, From: e.from}
			}
			e.learn(times, s.opts.Wall().Round(0))
		}
	}

	s.mu.Unlock()
	s.wake()
	if failed != nil {
		call(s.opts.Events.Failed, *failed)
	}
}

// start is from when on the task counts for a registry that does not know it.
func (e *entry) start() registry.Start {
	return registry.Start{At: e.from, Schedule: e.task.Schedule.String() + " " + e.task.Schedule.Zone().String()}
}

// learn takes from the registry up to when the task is accounted for. A time to
// come was noted by a clock that ran ahead, and hides runs due while no instance
// led: as much is looked at as may be made up for, but not from before the task
// existed, and the registry tells by the run's id what was enqueued.
func (e *entry) learn(times queue.TaskTimes, now time.Time) {
	e.known, e.since, e.next = true, times.UpTo, Slot{}
	if e.since.Sub(now) > time.Second {
		e.since = now.Add(-e.task.grace() - e.task.Jitter)
		if e.since.Before(times.From) {
			e.since = times.From
		}
	}
	if e.since.Before(e.changed) {
		e.since = e.changed
	}
}

// advance starts the first step of a task's plan: leaving out missed runs, or
// else the first run that is due. Called with the lock held.
func (s *Scheduler) advance(ctx context.Context, e *entry, now, mono time.Time) {
	if !e.known || e.busy {
		return
	}
	if e.since.Sub(now) > time.Second {
		// The clock was set back while we led. The registry recognises runs of times
		// that come again by their ids; a little more is looked at, lest a
		// time between two looks is lost.
		e.since, e.next = now.Add(-punctual), Slot{}
	}

	if mono.Before(e.retryAt) || now.Before(e.next.DueAt) {
		return
	}

	p := e.task.Plan(e.since, now)
	if len(p.Passed)+len(p.Enqueue) == 0 {
		e.next = p.Next
		return
	}

	e.next = Slot{}
	switch {
	case s.busy >= s.opts.Concurrency: // the end of any call wakes the loop
	case len(p.Passed) > 0: // the registry knows which of them were enqueued after all
		s.begin(ctx, e, p.Passed, ReasonMissed)
	case s.held[e.task.Name]:
		s.begin(ctx, e, p.Enqueue, ReasonPaused)
	case e.task.Overlap == SkipOverlap && s.opts.Running(e.task):
		s.begin(ctx, e, p.Enqueue, ReasonOverlap)
	default:
		s.begin(ctx, e, p.Enqueue[:1], "")
	}
}
