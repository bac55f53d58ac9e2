package periodic

import (
	"context"
	"errors"
	"strings"

	"tendril/internal/registry"
	"tendril/queue"
)

// LeaseName returns the lease for electing the leader of a queue's instances.
func LeaseName(queueName string) string { return "periodic:" + queueName }

// RunningLease returns the lease held while running a task that must not overlap.
func RunningLease(queueName, task string) string { return "running:" + queueName + "/" + task }

// VersionLease returns the lease for the leader_only commands of a version of the app.
func VersionLease(queueName, version string) string { return "version:" + queueName + "/" + version }

// OwnsLease reports whether a lease belongs to the instances that share a queue.
func OwnsLease(queueName, lease string) bool {
	return lease == LeaseName(queueName) || strings.HasPrefix(lease, RunningLease(queueName, "")) ||
		strings.HasPrefix(lease, VersionLease(queueName, ""))
}

// Leadership reports whether this instance enqueues.
type Leadership interface {
	// Term returns the term in which this instance leads; ok is false if that is not certain.
	Term() (term int64, ok bool)
	// Changed returns a channel that is closed when Term next changes.
	Changed() <-chan struct{}
}

// Registry stores and enqueues the scheduled runs; see registry.Runs. It is called concurrently for different tasks.
type Registry interface {
	// Since returns the times of each task and records new ones.
	Since(ctx context.Context, term int64, starts map[string]registry.Start) (map[string]queue.TaskTimes, error)
	// Enqueue sends the run, unless it was sent before, and accounts for it.
	Enqueue(ctx context.Context, term int64, run registry.Run) (registry.EnqueueResult, error)
	// Skip accounts for runs without sending, and returns the records of those already sent or announced.
	Skip(ctx context.Context, term int64, runs []registry.Run) (map[string]registry.RunRecord, error)
}

// ErrUndecided means that it is not known yet whether there is a registry.
var ErrUndecided = errors.New("the registry of periodic tasks is not known yet")
