package environment

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
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
	runs   func(lead periodic.Leadership) periodic.Registry
	pauses pauses // nil when pauses are this instance's own
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
	Fire(ctx context.Context, req broker.FireRequest, m queue.Outgoing) (sent queue.Sent, already bool, err error)
	Skip(ctx context.Context, req broker.FireRequest) error
	Since(ctx context.Context, lease string, term int64, from map[string]time.Time) (map[string]time.Time, error)
	Fired(ctx context.Context, id string) (bool, error)
}

// openRegistry finds the registry; nil when there is none to be had.
func (e *Environment) openRegistry(ctx context.Context) (*registry, error) {
	if e.broker != nil {
		return e.embeddedRegistry(e.broker.Registry()), nil
	}
	return e.remoteRegistry(ctx)
}

func (e *Environment) embeddedRegistry(r tendrilRegistry) *registry {
	f := fenced{registry: r, own: e.leaseName() + "/"}
	if e.s.Leader == config.LeaderElect {
		f.lease = e.leaseName()
	}
	e.known = func(ctx context.Context, id string) (bool, error) { return r.Fired(ctx, f.own+id) }
	return &registry{leases: r, pauses: ownPauses{r, f.own}, runs: func(periodic.Leadership) periodic.Registry { return f }}
}

// fenced enqueues runs in one transaction with the check of the leader's term.
type fenced struct {
	registry tendrilRegistry
	// own begins the names of runs and tasks, since several environments may
	// share a registry.
	own   string
	lease string // "" leaves the fence out: there is one instance only
}

func (f fenced) request(term int64, run periodic.Fire) broker.FireRequest {
	req := broker.FireRequest{Queue: run.Queue, ID: f.own + run.ID, Task: f.own + run.Task, At: run.ScheduledAt, Lease: f.lease, Term: term}
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
	owned := make(map[string]time.Time, len(from))
	for task, at := range from {
		owned[f.own+task] = at
	}
	if f.lease == "" {
		term = 0
	}
	since, err := f.registry.Since(ctx, f.lease, term, owned)
	if err != nil {
		return nil, err
	}
	plain := make(map[string]time.Time, len(since))
	for task, at := range since {
		plain[strings.TrimPrefix(task, f.own)] = at
	}
	return plain, nil
}

// Enqueue puts the run into its queue unless it was there before.
func (f fenced) Enqueue(ctx context.Context, term int64, run periodic.Fire) (periodic.Enqueued, error) {
	sent, already, err := f.registry.Fire(ctx, f.request(term, run), run.Message)
	return periodic.Enqueued{Sent: sent, Already: already}, err
}

// Skip accounts for the run without a message.
func (f fenced) Skip(ctx context.Context, term int64, run periodic.Fire) error {
	return f.registry.Skip(ctx, f.request(term, run))
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
func (e *Environment) pausedAtStart(ctx context.Context, p pauses) []string {
	if p == nil {
		return nil
	}
	reasons, err := p.Paused(ctx)
	if err != nil {
		e.report.note(slog.LevelWarn, "periodic", "it is not known which tasks are paused: "+err.Error())
	}
	e.tasks.learn(reasons)
	var names []string
	for name := range reasons {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// pauseRhythm is how often an instance looks for pauses by others.
const pauseRhythm = 5 * time.Second

// watchPauses follows the pauses that other instances make.
func (e *Environment) watchPauses(ctx context.Context) {
	if e.tasks.pauses == nil {
		return
	}
	tick := time.NewTicker(pauseRhythm)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reasons, err := e.tasks.pauses.Paused(ctx)
		if err != nil {
			continue // what is known stays in force
		}
		e.tasks.learn(reasons)
		all, _ := e.tasks.scheduler.Status()
		for _, t := range all {
			_, paused := reasons[t.Task.Name]
			switch {
			case paused && !t.Paused:
				e.tasks.scheduler.Pause(t.Task.Name)
			case !paused && t.Paused:
				e.tasks.scheduler.Resume(t.Task.Name)
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
