package environment

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
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
	e.known = r.Fired
	lease := ""
	if e.s.Leader == config.LeaderElect {
		lease = e.leaseName()
	}
	return &registry{leases: r, pauses: r, runs: func(periodic.Leadership) periodic.Registry { return fenced{r, lease} }}
}

// fenced enqueues runs in one transaction with the check of the leader's term.
type fenced struct {
	registry tendrilRegistry
	lease    string // "" leaves the fence out
}

func (f fenced) fence(term int64) (string, int64) {
	if f.lease == "" || term == 0 {
		return "", 0
	}
	return f.lease, term
}

func (f fenced) request(term int64, run periodic.Fire) broker.FireRequest {
	lease, term := f.fence(term)
	req := broker.FireRequest{Queue: run.Queue, ID: run.ID, Task: run.Task, At: run.ScheduledAt, Lease: lease, Term: term}
	if run.Manual {
		req.Task = ""
	}
	return req
}

// Since returns up to when the runs of each task are accounted for.
func (f fenced) Since(ctx context.Context, term int64, from map[string]time.Time) (map[string]time.Time, error) {
	lease, term := f.fence(term)
	return f.registry.Since(ctx, lease, term, from)
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
