package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tendril/broker"
	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/queue"
)

// brokerRegistry is the registry of an embedded queue, in this process or over its endpoint.
type brokerRegistry interface {
	leader.Store
	PauseStore
	Enqueue(ctx context.Context, req broker.RunRequest, m queue.Outgoing) (sent queue.Sent, already bool, err error)
	Skip(ctx context.Context, req broker.RunRequest, ids []string) (made map[string]string, err error)
	SinceUnder(ctx context.Context, lease string, term int64, from map[string]time.Time,
		schedules map[string]string) (map[string]queue.TaskTimes, error)
	EnqueuedTo(ctx context.Context, id, path string) (bool, error)
}

// EmbeddedRuns are the runs and pauses of one environment in the registry of an embedded
// queue, which several environments may share. It enqueues a run in one transaction with the
// check of the leader's term. It is a [periodic.Registry].
type EmbeddedRuns struct {
	registry brokerRegistry
	// prefix begins the names of runs and tasks.
	prefix string
	// lease is the one whose term is checked; "" where there is one instance only.
	lease string
}

// NewEmbeddedRuns returns the runs of the environment whose first queue has that name. local declares this instance
// the only one: then no term is checked.
func NewEmbeddedRuns(registry brokerRegistry, queueName string, local bool) EmbeddedRuns {
	runs := EmbeddedRuns{registry: registry, prefix: periodic.LeaseName(queueName) + "/"}
	if !local {
		runs.lease = periodic.LeaseName(queueName)
	}
	return runs
}

// Since implements [periodic.Registry].
func (r EmbeddedRuns) Since(ctx context.Context, term int64, starts map[string]periodic.Start) (
	map[string]queue.TaskTimes, error) {
	from, schedules := make(map[string]time.Time, len(starts)), make(map[string]string, len(starts))
	for task, start := range starts {
		from[r.prefix+task], schedules[r.prefix+task] = start.At, start.Schedule
	}
	if r.lease == "" {
		term = 0
	}
	known, err := r.registry.SinceUnder(ctx, r.lease, term, from, schedules)
	return withoutPrefix(known, r.prefix), err
}

// Enqueue implements [periodic.Registry].
func (r EmbeddedRuns) Enqueue(ctx context.Context, term int64, run periodic.ScheduledRun) (periodic.EnqueueResult,
	error) {
	sent, already, err := r.registry.Enqueue(ctx, r.request(term, run), run.Message)
	if errors.Is(err, &queue.Error{Code: queue.CodeQueueDoesNotExist}) {
		err = fmt.Errorf("the queue %s does not exist: create it with 'tendril queues create %s', and name it in the "+
			"--queues of an environment: %w", run.Queue, run.Queue, err)
	}
	return periodic.EnqueueResult{Sent: sent, Already: already}, err
}

// Skip implements [periodic.Registry].
func (r EmbeddedRuns) Skip(ctx context.Context, term int64, runs []periodic.ScheduledRun) (map[string]periodic.Claim,
	error) {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = r.prefix + runs[i].ID
	}
	made, err := r.registry.Skip(ctx, r.request(term, runs[len(runs)-1]), ids)
	claims := make(map[string]periodic.Claim, len(made))
	for id, message := range withoutPrefix(made, r.prefix) {
		claims[id] = periodic.Claim{Tries: 1, Settled: true, MessageID: message}
	}
	return claims, err
}

func (r EmbeddedRuns) request(term int64, run periodic.ScheduledRun) broker.RunRequest {
	req := broker.RunRequest{Queue: run.Queue, ID: r.prefix + run.ID, Task: r.prefix + run.Task, At: run.ScheduledAt,
		Lease: r.lease, Term: term}
	if run.Manual {
		req.Task, req.Lease = "", ""
	}
	if req.Lease == "" {
		req.Term = 0
	}
	return req
}

// Known reports whether a run was enqueued for this path.
func (r EmbeddedRuns) Known(ctx context.Context, id, path string) (bool, error) {
	return r.registry.EnqueuedTo(ctx, r.prefix+id, path)
}

// SetPaused records for all instances that a task is paused, or no longer is.
func (r EmbeddedRuns) SetPaused(ctx context.Context, task, reason string, paused bool) error {
	return r.registry.SetPaused(ctx, r.prefix+task, reason, paused)
}

// Paused returns the paused tasks and the reason of each.
func (r EmbeddedRuns) Paused(ctx context.Context) (map[string]string, error) {
	all, err := r.registry.Paused(ctx)
	return withoutPrefix(all, r.prefix), err
}

// withoutPrefix returns the entries whose key has the prefix, by the rest of the key.
func withoutPrefix[V any](all map[string]V, prefix string) map[string]V {
	own := make(map[string]V, len(all))
	for key, value := range all {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			own[name] = value
		}
	}
	return own
}
