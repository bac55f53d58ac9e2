package periodic

import (
	"context"
	"errors"
	"strings"

	"tendril/internal/registry"
	"tendril/queue"
)

// LeaseName is the lease by which the instances that share a queue elect the leader, which enqueues.
func LeaseName(queueName string) string { return "periodic:" + queueName }

// RunningLease is the lease of the instance that works on a run of a task that must not overlap.
func RunningLease(queueName, task string) string { return "running:" + queueName + "/" + task }

// VersionLease is the lease of the instance that runs the leader_only commands of a version of the app.
func VersionLease(queueName, version string) string { return "version:" + queueName + "/" + version }

// OwnsLease reports whether a lease is one that the instances which share a queue make in its registry.
func OwnsLease(queueName, lease string) bool {
	return lease == LeaseName(queueName) || strings.HasPrefix(lease, RunningLease(queueName, "")) ||
		strings.HasPrefix(lease, VersionLease(queueName, ""))
}

// Leadership reports whether this instance is the one that enqueues.
type Leadership interface {
	// Term returns the term in which this instance leads; ok is false if it does not lead, or if that is not certain.
	// It is called right before each effect.
	Term() (term int64, ok bool)
	// Changed returns a channel that is closed when Term next changes.
	Changed() <-chan struct{}
}

// Registry has the scheduled runs of tasks and puts them into queues; registry.Runs documents the methods. They are
// called from several goroutines, one at a time for each task.
type Registry interface {
	// Since returns the times of each task, and enters those that are not known.
	Since(ctx context.Context, term int64, starts map[string]registry.Start) (map[string]queue.TaskTimes, error)
	// Enqueue sends the run, unless it was sent before, and accounts for it.
	Enqueue(ctx context.Context, term int64, run registry.Run) (registry.EnqueueResult, error)
	// Skip accounts for runs without sending, and returns the records of those that were sent or announced before.
	Skip(ctx context.Context, term int64, runs []registry.Run) (map[string]registry.RunRecord, error)
}

// ErrUndecided is returned while it is not known whether there is a registry.
var ErrUndecided = errors.New("the registry of periodic tasks is not known yet")
