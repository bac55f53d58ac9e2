package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/observe/event"
)

// Options configure [New].
type Options struct {
	File File
	// Required means that the settings name the file. Otherwise, it is in the app's directory and may be missing.
	Required bool
	Registry RegistryOptions
	// Lease defaults to package leader's. Address is the console's.
	Lease   time.Duration
	Address string
	// Watch, Revision and Announce are as in leader.Options.
	Watch     func() time.Duration
	Revision  func() int64
	Announce  func() string
	HasWorker func(queue string) bool
	// Pauses stores the paused tasks if the registry cannot; it may be nil.
	Pauses      PauseStore
	HistoryFile string
	Observers   Observers
	// Nothing is started after Stopping is closed.
	Stopping <-chan struct{}
	Wall     func() time.Time
	Log      *slog.Logger
}

// Manager manages an environment's periodic tasks. All methods except Open and Start are safe for concurrent use.
type Manager struct {
	opts     Options
	log      *slog.Logger
	registry *registryFinder
	election *Election
	file     watchedFile

	// changing contains one token. Only its holder may replace the schedule.
	changing chan struct{}
	current  atomic.Pointer[schedule] // nil without tasks

	run     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup
	started atomic.Bool
}

type schedule struct {
	scheduler *periodic.Scheduler
	off       string
	pauses    *pauses
	account   *Account
}

// ErrNotScheduled means that no instance can be trusted to enqueue each run only once.
var ErrNotScheduled = errors.New("nothing is scheduled")

// New returns a manager. Call [Manager.Open] next.
func New(opts Options) *Manager {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	log := opts.Log.With("component", "periodic")
	finder := &registryFinder{opts: opts.Registry, log: log}
	m := &Manager{opts: opts, log: log, registry: finder, changing: make(chan struct{}, 1)}
	m.file.set(opts.File)
	m.run, m.stop = context.WithCancel(context.Background())
	m.changing <- struct{}{}

	events := leaderEvents(opts.Log.With("component", "leader"), opts.Observers.Leader, m.stopping)
	m.election = &Election{registry: finder, localTerm: time.Now().UnixNano(), made: make(chan struct{}),
		opts: leader.Options{Name: finder.leaseName(), Data: opts.Address, Revision: opts.Revision,
			Announce: opts.Announce, Lease: opts.Lease, Watch: opts.Watch, Events: events}}
	finder.lead = m.election
	return m
}

// Open creates the scheduler and the elector, if there are tasks, without starting them. trustRegistry opens the
// registry even without tasks.
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

func (m *Manager) newSchedule(ctx context.Context, tasks *periodic.File) (*schedule, error) {
	reg, err := m.registry.open(ctx)
	if err != nil {
		return nil, err
	}
	if reg == nil {
		off := m.registry.absenceReason()
		event.Task.Log(m.log, slog.LevelWarn, "periodic tasks not scheduled", "file", m.file.path(), "reason", off)
		return &schedule{off: off}, nil
	}
	if err := m.election.join(reg); err != nil {
		return nil, err
	}

	s := &schedule{pauses: m.newPauses(ctx, reg),
		account: &Account{inFlight: map[string]int{}, mayOverlap: m.file.mayOverlap}}
	opts := periodic.Options{Queue: m.opts.Registry.Queue, Running: m.unfinished,
		Paused: slices.Collect(maps.Keys(s.pauses.all())), Wall: m.opts.Wall,
		Past:   readHistory(m.opts.HistoryFile, m.log),
		Events: schedulerEvents(m.log, m.opts.Observers.Scheduler, s.pauses.all)}
	if reg.leases != nil {
		s.account.shared = &runningTasks{store: reg.leases, queue: m.opts.Registry.Queue,
			owner: m.opts.Address, log: m.log, run: m.run, work: &m.work, marked: map[string]context.CancelFunc{},
			seen: map[string]seenLease{}}
		opts.RunningElsewhere = s.account.shared.runsElsewhere
	}

	s.scheduler = periodic.New(m.opts.withKnownQueues(tasks), m.election, reg.runs, opts)
	s.account.scheduler = s.scheduler
	s.pauses.scheduler = s.scheduler
	return s, nil
}

func (m *Manager) newPauses(ctx context.Context, reg *sharedRegistry) *pauses {
	p := &pauses{store: reg.pauses, interval: reg.pauseInterval}
	if p.store == nil {
		p.store = m.opts.Pauses
	}
	if m.opts.Registry.Broker != nil || reg.pauses == nil { // no network call
		known, err := p.read(ctx)
		m.warnPausesUnread(err)
		p.known.Store(&known)
	}
	return p
}

func (m *Manager) warnPausesUnread(err error) {
	if err != nil {
		m.log.Warn("paused tasks not read", "err", err)
	}
}

// Stop stops scheduling and releases the lease.
func (m *Manager) Stop(ctx context.Context) error {
	m.stop()
	ended := make(chan struct{})
	go func() {
		<-m.changing // never returned, so that nothing is started anymore
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

// Account returns the record of deliveries, or nil if nothing is scheduled.
func (m *Manager) Account() *Account {
	if s := m.scheduling(); s != nil {
		return s.account
	}
	return nil
}

func (m *Manager) scheduling() *schedule {
	if s := m.current.Load(); s != nil && s.scheduler != nil {
		return s
	}
	return nil
}

// unfinished reports whether a run is being delivered here, or the latest run's message is in this process's embedded
// queue. RunningElsewhere covers other instances.
func (m *Manager) unfinished(task periodic.Task) bool {
	account := m.Account()
	if account == nil {
		return false
	}
	if account.isInFlight(task.Name) {
		return true
	}

	embedded := m.opts.Registry.Broker
	runs := account.scheduler.History(task.Name)
	latest := slices.IndexFunc(runs, func(r periodic.Run) bool { return r.MessageID != "" })
	if embedded == nil || latest < 0 {
		return false
	}
	_, err := embedded.Message(context.Background(), cmp.Or(task.Queue, m.opts.Registry.Queue), runs[latest].MessageID)
	return err == nil
}

// Account records the deliveries of runs. It is safe for concurrent use.
type Account struct {
	scheduler  *periodic.Scheduler
	mayOverlap func(task string) bool
	shared     *runningTasks // nil without other instances

	mu       sync.Mutex
	inFlight map[string]int
}

// Begun records the start of a run's delivery.
func (a *Account) Begun(task string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inFlight[task]++
	if a.shared != nil && !a.mayOverlap(task) {
		a.shared.mark(task)
	}
}

// Ended records the end of a run's delivery.
func (a *Account) Ended(outcome periodic.Outcome) {
	a.mu.Lock()
	a.inFlight[outcome.Task]--
	if a.inFlight[outcome.Task] == 0 {
		delete(a.inFlight, outcome.Task)
		if a.shared != nil {
			a.shared.unmark(outcome.Task)
		}
	}
	a.mu.Unlock()
	a.scheduler.Outcome(outcome)
}

func (a *Account) isInFlight(task string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inFlight[task] > 0
}
