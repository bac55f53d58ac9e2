package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/observe/event"
)

// Options configure [New].
type Options struct {
	// File is the file of tasks as it was read before the start.
	File File
	// Required says that the settings name the file. Else it is one of the app's folder: when
	// it is gone, there are no tasks.
	Required bool
	// Registry says where the instances agree.
	Registry RegistryOptions
	// Lease is for how long a leader leads without renewing; 0 means the default of package
	// leader. Address is shown to the other instances: where this one's console is.
	Lease   time.Duration
	Address string
	// HasWorker reports whether a worker of this environment receives from an embedded queue.
	HasWorker func(queue string) bool
	// Pauses keep the pauses of tasks where the registry cannot; nil for this run of the process only.
	Pauses PauseStore
	// HistoryFile is the path of the file with the runs that are remembered over restarts; "" keeps them in memory.
	HistoryFile string
	// Observers receive the events.
	Observers Observers
	// Stopping is closed when the environment begins to stop: nothing is begun after that.
	Stopping <-chan struct{}
	// Wall is the time of day; nil means time.Now.
	Wall func() time.Time
	// Log receives what happens; nil discards it.
	Log *slog.Logger
}

// Manager has the periodic tasks of one environment. All methods may be called at any time,
// by any goroutine, but for Open and Start, which begin it.
type Manager struct {
	opts     Options
	log      *slog.Logger
	registry *finder
	election *Election
	file     watchedFile

	// changing holds one token: its holder may replace the schedule.
	changing chan struct{}
	current  atomic.Pointer[schedule] // nil while there are no tasks

	// run is done when Stop is called; work are the goroutines that it waits for.
	run     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
	started atomic.Bool
}

// schedule is what enqueues the tasks, on whichever instance leads.
type schedule struct {
	scheduler *periodic.Scheduler // nil when nothing is scheduled
	off       string              // why
	pauses    *pauses
	account   *Account
}

// ErrNotScheduled means that there are tasks, and no instance that can be trusted to enqueue
// each run once.
var ErrNotScheduled = errors.New("nothing is scheduled")

// New returns the tasks of a file. [Manager.Open] comes next.
func New(opts Options) *Manager {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	log := opts.Log.With("component", "periodic")
	registryFinder := &finder{opts: opts.Registry, log: log}
	m := &Manager{opts: opts, log: log, registry: registryFinder, changing: make(chan struct{}, 1)}
	m.file.set(opts.File)
	m.run, m.stop = context.WithCancel(context.Background())
	m.changing <- struct{}{}
	events := leaderEvents(opts.Log.With("component", "leader"), opts.Observers.Leader, m.stopping)
	m.election = &Election{registry: registryFinder, localTerm: time.Now().UnixNano(), made: make(chan struct{}),
		opts: leader.Options{Name: registryFinder.leaseName(), Data: opts.Address, Lease: opts.Lease, Events: events}}
	registryFinder.lead = m.election
	return m
}

// Open makes the scheduler and the elector, where there are tasks. Nothing runs yet. It opens the
// registry also where it is only asked for runs of others' tasks.
func (m *Manager) Open(ctx context.Context, trustRegistry bool) error {
	if m.opts.File.Tasks == nil {
		if !trustRegistry {
			return nil
		}
		_, err := m.registry.open(ctx)
		return err
	}
	s, err := m.newSchedule(ctx, m.opts.File.Tasks)
	if err == nil {
		m.current.Store(s)
	}
	return err
}

// newSchedule makes what enqueues tasks. Nothing runs yet.
func (m *Manager) newSchedule(ctx context.Context, tasks *periodic.File) (*schedule, error) {
	reg, err := m.registry.open(ctx)
	if err != nil {
		return nil, err
	}

	if reg == nil {
		s := &schedule{off: "no leader can be elected: give --registry-table NAME (and --registry-create to make it), or " +
			"--leader local when this is the only instance"}
		if m.registry.undecided.Load() {
			s.off = "it is not known yet whether the server of the queue keeps a registry; tendril asks again"
			if refusal, _ := m.registry.refusal.Load().(string); refusal != "" {
				s.off = refusal
			}
		}
		event.Task.Log(m.log, slog.LevelWarn, "periodic tasks not scheduled", "file", m.file.path(), "reason", s.off)
		return s, nil
	}

	if err := m.election.join(reg); err != nil {
		return nil, err
	}

	s := &schedule{pauses: &pauses{store: reg.pauses, interval: reg.pauseInterval}}
	own := m.opts.Registry.Broker != nil || reg.pauses == nil // nothing is read over a network
	if reg.pauses == nil {
		s.pauses.store = m.opts.Pauses
	}
	var paused []string
	if own {
		paused = s.pauses.read(ctx, m.log)
	}

	opts := periodic.Options{Queue: m.opts.Registry.Queue, Running: m.unfinished, Paused: paused, Wall: m.opts.Wall,
		Past:   readHistory(m.opts.HistoryFile, m.log),
		Events: schedulerEvents(m.log, m.opts.Observers.Scheduler, s.pauses.all)}

	s.account = &Account{inWork: map[string]int{}, mayOverlap: m.file.mayOverlap}
	if reg.leases != nil {
		s.account.shared = &runningTasks{store: reg.leases, queue: m.opts.Registry.Queue,
			owner: m.opts.Address, log: m.log, run: m.run, work: &m.work, held: map[string]context.CancelFunc{},
			seen: map[string]seenLease{}}
		opts.RunningElsewhere = s.account.shared.elsewhere
	}

	s.scheduler = periodic.New(m.opts.placed(tasks), m.election, reg.runs, opts)
	s.account.scheduler = s.scheduler
	return s, nil
}

// Stop ends the scheduling and releases the lease, before ctx is done.
func (m *Manager) Stop(ctx context.Context) error {
	m.stop()
	ended := make(chan struct{})
	go func() {
		<-m.changing // for good: nothing is begun any more
		m.work.Wait()
		m.registry.close()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("enqueueing did not stop: %w", cmp.Or(context.Cause(ctx), ctx.Err()))
	}
}

// stopping reports whether the environment stops.
func (m *Manager) stopping() bool {
	select {
	case <-m.opts.Stopping:
		return true
	case <-m.run.Done():
		return true
	default:
		return false
	}
}

// Account returns what keeps account of deliveries; nil while nothing is scheduled.
func (m *Manager) Account() *Account {
	if s := m.current.Load(); s != nil && s.scheduler != nil {
		return s.account
	}
	return nil
}

// unfinished reports whether the previous run of a task is unfinished: the app works on it
// here, or its message still lies in an embedded queue. What others work on is in the registry.
func (m *Manager) unfinished(task periodic.Task) bool {
	a, b := m.Account(), m.opts.Registry.Broker
	switch {
	case a == nil:
		return false
	case a.anyInWork(task.Name):
		return true
	case b == nil:
		return false
	}
	for _, run := range a.scheduler.History(task.Name) {
		if run.MessageID == "" {
			continue
		}
		_, err := b.Message(context.Background(), cmp.Or(task.Queue, m.opts.Registry.Queue), run.MessageID)
		return err == nil
	}
	return false
}

// Account keeps account of the deliveries of scheduled runs. It is safe for concurrent use.
type Account struct {
	scheduler  *periodic.Scheduler
	mayOverlap func(task string) bool
	shared     *runningTasks // nil where there are no other instances

	mu     sync.Mutex
	inWork map[string]int // deliveries by task
}

// Begun records that a run of a task is delivered now.
func (a *Account) Begun(task string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inWork[task]++
	if a.shared != nil && !a.mayOverlap(task) {
		a.shared.begin(task)
	}
}

// Ended records how the delivery of a run ended.
func (a *Account) Ended(outcome periodic.Outcome) {
	a.mu.Lock()
	if a.inWork[outcome.Task]--; a.inWork[outcome.Task] == 0 {
		delete(a.inWork, outcome.Task)
		if a.shared != nil {
			a.shared.end(outcome.Task)
		}
	}
	a.mu.Unlock()
	a.scheduler.Outcome(outcome)
}

func (a *Account) anyInWork(task string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inWork[task] > 0
}
