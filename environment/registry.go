package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tendril/broker"
	"tendril/config"
	"tendril/leader"
	"tendril/periodic"
	"tendril/queue"
)

// registry is where instances agree: on who leads, which runs were enqueued,
// and which tasks are paused.
type registry struct {
	leases leader.Store
	// runs puts runs into queues for whoever leads.
	runs func(lead periodic.Leadership) periodic.Registry
	// known reports whether a run was made with this path.
	known  func(ctx context.Context, runID, path string) (bool, error)
	pauses pauses // nil when pauses are this instance's own
	// pauseRhythm is how often to look for pauses by other instances.
	pauseRhythm time.Duration
}

// pauses are the tasks that a person paused, for all instances.
type pauses interface {
	SetPaused(ctx context.Context, task, reason string, paused bool) error
	Paused(ctx context.Context) (map[string]string, error)
}

// tendrilRegistry is the registry of an embedded queue, in this process or over
// its endpoint.
type tendrilRegistry interface {
	leader.Store
	pauses
	Enqueue(ctx context.Context, req broker.RunRequest, m queue.Outgoing) (sent queue.Sent, already bool, err error)
	Skip(ctx context.Context, req broker.RunRequest, ids []string) (made map[string]string, err error)
	SinceUnder(ctx context.Context, lease string, term int64, from map[string]time.Time,
		schedules map[string]string) (map[string]time.Time, error)
	EnqueuedTo(ctx context.Context, id, path string) (bool, error)
}

// openRegistry finds the registry, once; nil when there is none to be had.
func (e *Environment) openRegistry(ctx context.Context) (reg *registry, err error) {
	if reg = e.agreed.Load(); reg != nil {
		return reg, nil
	}
	if e.home().embedded {
		reg = e.embeddedRegistry(e.broker.Registry())
	} else if reg, err = e.remoteRegistry(ctx); err != nil {
		return nil, err
	}
	e.agreed.Store(reg)
	return reg, nil
}

func (e *Environment) embeddedRegistry(r tendrilRegistry) *registry {
	f := fenced{registry: r, own: e.leaseName() + "/"}
	if e.s.Leader == config.LeaderElect {
		f.lease = e.leaseName()
	}
	keeper := &scheduleKeeper{inForce: e.schedules, since: f.sinceUnder}
	return &registry{leases: r, known: f.known, pauses: keptPauses{ownPauses{r, f.own}, keeper},
		pauseRhythm: pauseRhythm, runs: func(lead periodic.Leadership) periodic.Registry {
			keeper.Registry, keeper.lead = f, lead
			return e.watchTerm(keeper, lead)
		}}
}

// scheduleKeeper has the registry know by which schedule each task is accounted
// for. A task that had another one before this process began is not made up for
// at times of the new one.
type scheduleKeeper struct {
	periodic.Registry
	lead    periodic.Leadership
	inForce func() map[string]string // schedules by task
	since   func(ctx context.Context, term int64, from map[string]time.Time,
		schedules map[string]string) (map[string]time.Time, error)

	mu    sync.Mutex
	noted map[string]string // what the registry was last told
}

// Since is [periodic.Registry.Since].
func (k *scheduleKeeper) Since(ctx context.Context, term int64, from map[string]time.Time) (map[string]time.Time,
	error) {
	schedules := k.inForce()
	since, err := k.since(ctx, term, from, schedules)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.noted == nil {
		k.noted = map[string]string{}
	}
	for task := range from {
		k.noted[task] = schedules[task]
	}
	return since, nil
}

// keep tells the registry of the schedules that changed by a reload, which has
// the scheduler ask for nothing. Errors do no harm: it is tried again.
func (k *scheduleKeeper) keep(ctx context.Context, now time.Time) {
	term, ok := k.lead.Term()
	if !ok {
		return
	}
	changed := map[string]time.Time{}
	schedules := k.inForce()
	k.mu.Lock()
	for task, before := range k.noted {
		if schedule, there := schedules[task]; there && schedule != before {
			changed[task] = now
		}
	}
	k.mu.Unlock()
	if len(changed) > 0 {
		_, _ = k.Since(ctx, term, changed)
	}
}

// schedules are those in force, in words that differ when they do.
func (e *Environment) schedules() map[string]string {
	words := map[string]string{}
	t := e.cron.Load()
	if t == nil || t.scheduler == nil {
		return words
	}
	all, _ := t.scheduler.Status()
	for _, t := range all {
		words[t.Task.Name] = t.Task.Schedule.String() + " " + t.Task.Schedule.Zone().String()
	}
	return words
}

// keptPauses are the pauses of a registry that is told of schedules as often as
// it is asked for pauses.
type keptPauses struct {
	pauses
	keeper *scheduleKeeper
}

// watchedTerm tells when the registry takes a term for over in which this
// instance leads by all that it knows. The scheduler leaves that to the next
// leader and says nothing; when it lasts, no task is enqueued.
type watchedTerm struct {
	periodic.Registry
	lead periodic.Leadership
	tell func(term int64, err error)
	told *atomic.Int64 // the term of which it was told
}

func (e *Environment) watchTerm(r periodic.Registry, lead periodic.Leadership) periodic.Registry {
	return watchedTerm{r, lead, func(term int64, err error) {
		e.report.note(slog.LevelWarn, "periodic",
			fmt.Sprintf("this instance leads in term %d, but the registry refuses its tasks: %v; "+
				"they wait until the two agree; look whether other instances run with --leader local on the same registry", term,
				err))
	}, new(atomic.Int64)}
}

// see tells of an error, once in each term.
func (w watchedTerm) see(term int64, err error) {
	if term == 0 || !errors.Is(err, queue.ErrStaleTerm) {
		return
	}
	if now, ok := w.lead.Term(); ok && now == term && w.told.Swap(term) != term {
		w.tell(term, err)
	}
}

// Enqueue is [periodic.Registry.Enqueue].
func (w watchedTerm) Enqueue(ctx context.Context, term int64, run periodic.ScheduledRun) (periodic.EnqueueResult,
	error) {
	done, err := w.Registry.Enqueue(ctx, term, run)
	w.see(term, err)
	return done, err
}

// Skip is [periodic.Registry.Skip].
func (w watchedTerm) Skip(ctx context.Context, term int64, runs []periodic.ScheduledRun) (map[string]periodic.Claim,
	error) {
	records, err := w.Registry.Skip(ctx, term, runs)
	w.see(term, err)
	return records, err
}

// fenced enqueues runs in one transaction with the check of the leader's term.
type fenced struct {
	registry tendrilRegistry
	// own begins the names of runs and tasks, since several environments may
	// share a registry.
	own   string
	lease string // "" leaves the fence out: there is one instance only
}

func (f fenced) request(term int64, run periodic.ScheduledRun) broker.RunRequest {
	req := broker.RunRequest{Queue: run.Queue, ID: f.own + run.ID, Task: f.own + run.Task, At: run.ScheduledAt,
		Lease: f.lease, Term: term}
	if run.Manual {
		req.Task, req.Lease = "", ""
	}
	if req.Lease == "" {
		req.Term = 0
	}
	return req
}

// Since returns up to when the runs of each task are accounted for.
func (f fenced) Since(ctx context.Context, term int64, from map[string]time.Time) (map[string]time.Time, error) {
	return f.sinceUnder(ctx, term, from, nil)
}

// sinceUnder is Since for tasks with these schedules.
func (f fenced) sinceUnder(ctx context.Context, term int64, from map[string]time.Time,
	schedules map[string]string) (map[string]time.Time, error) {
	owned, words := make(map[string]time.Time, len(from)), make(map[string]string, len(from))
	for task, at := range from {
		owned[f.own+task], words[f.own+task] = at, schedules[task]
	}
	if f.lease == "" {
		term = 0
	}
	since, err := f.registry.SinceUnder(ctx, f.lease, term, owned, words)
	if err != nil {
		return nil, err
	}
	plain := make(map[string]time.Time, len(since))
	for task, at := range since {
		plain[strings.TrimPrefix(task, f.own)] = at
	}
	return plain, nil
}

// known reports whether a run was made for this path.
func (f fenced) known(ctx context.Context, id, path string) (bool, error) {
	return f.registry.EnqueuedTo(ctx, f.own+id, path)
}

// Enqueue puts the run into its queue unless it was there before.
func (f fenced) Enqueue(ctx context.Context, term int64, run periodic.ScheduledRun) (periodic.EnqueueResult, error) {
	sent, already, err := f.registry.Enqueue(ctx, f.request(term, run), run.Message)
	return periodic.EnqueueResult{Sent: sent, Already: already}, err
}

// Skip accounts for the runs without a message. Of those that were made all the same
// it returns the records.
func (f fenced) Skip(ctx context.Context, term int64, runs []periodic.ScheduledRun) (map[string]periodic.Claim, error) {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = f.own + runs[i].ID
	}
	made, err := f.registry.Skip(ctx, f.request(term, runs[len(runs)-1]), ids)
	records := make(map[string]periodic.Claim, len(made))
	for id, message := range made {
		records[strings.TrimPrefix(id, f.own)] = periodic.Claim{Tries: 1, Settled: true, MessageID: message}
	}
	return records, err
}

// ownPauses are the pauses of one environment in a registry that others share.
type ownPauses struct {
	all pauses
	own string
}

// SetPaused notes for all instances that a task is paused, or no longer is.
func (p ownPauses) SetPaused(ctx context.Context, task, reason string, paused bool) error {
	return p.all.SetPaused(ctx, p.own+task, reason, paused)
}

// Paused returns the paused tasks and the reason of each.
func (p ownPauses) Paused(ctx context.Context) (map[string]string, error) {
	all, err := p.all.Paused(ctx)
	mine := map[string]string{}
	for task, reason := range all {
		if name, ok := strings.CutPrefix(task, p.own); ok {
			mine[name] = reason
		}
	}
	return mine, err
}

// pausedAtStart asks which tasks are paused; when that cannot be known, none.
func (e *Environment) pausedAtStart(ctx context.Context, t *tasks) []string {
	if t.pauses == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	reasons, err := t.pauses.Paused(ctx)
	if err != nil {
		e.report.note(slog.LevelWarn, "periodic", "it is not known which tasks are paused: "+err.Error())
	}
	t.learn(reasons)
	var names []string
	for name := range reasons {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// pausePatience bounds the question which tasks are paused.
const pausePatience = 10 * time.Second

// How often an instance looks for pauses by others. A look at DynamoDB costs.
const (
	pauseRhythm      = 5 * time.Second
	tablePauseRhythm = 30 * time.Second
)

// watchPauses follows the pauses that other instances make.
func watchPauses(ctx context.Context, t *tasks) {
	if t.pauses == nil {
		return
	}
	tick := time.NewTicker(t.pauseRhythm)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p, ok := t.pauses.(keptPauses); ok {
			p.keeper.keep(ctx, time.Now())
		}
		reasons, err := t.pauses.Paused(ctx)
		if err != nil {
			continue // what is known stays in force
		}
		t.learn(reasons)
		all, _ := t.scheduler.Status()
		for _, task := range all {
			_, paused := reasons[task.Task.Name]
			switch {
			case paused && !task.Paused:
				t.scheduler.Pause(task.Task.Name)
			case !paused && task.Paused:
				t.scheduler.Resume(task.Task.Name)
			}
		}
	}
}

// readFull reads up to len(data) bytes; a shorter file is no error.
func readFull(r io.Reader, data []byte) (int, error) {
	n, err := io.ReadFull(r, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}
