package periodic

import (
	"context"
	"errors"
	"strings"

	"tendril/internal/registry"
	"tendril/queue"
)

// LeaseName returns the name of the lease that elects the leader of a queue's instances.
func LeaseName(queueName string) string { return "periodic:" + queueName }

// RunningLease returns the name of the lease held while a task that must not overlap runs.
func RunningLease(queueName, task string) string { return "running:" + queueName + "/" + task }

// VersionLease returns the name of the lease for an app version's leader_only commands.
func VersionLease(queueName, version string) string { return "version:" + queueName + "/" + version }

// OwnsLease reports whether a lease, or a record of package instances, belongs to a queue's instances.
func OwnsLease(queueName, lease string) bool {
	return lease == LeaseName(queueName) || strings.HasPrefix(lease, LeaseName(queueName)+"/") ||
		strings.HasPrefix(lease, RunningLease(queueName, "")) || strings.HasPrefix(lease, VersionLease(queueName, ""))
}

// Leadership reports whether this instance is the leader.
type Leadership interface {
	// ok is false unless this instance is certainly the leader.
	Term() (term int64, ok bool)
	// The channel is closed when Term next changes.
	Changed() <-chan struct{}
}

// Registry stores and enqueues runs; see registry.Runs. It may be called concurrently for different tasks.
type Registry interface {
	// Since returns the times of each task, and records new tasks.
	Since(ctx context.Context, term int64, starts map[string]registry.Start) (map[string]queue.TaskTimes, error)
	// Enqueue sends the run unless it was already sent, and accounts for it.
	Enqueue(ctx context.Context, term int64, run registry.Run) (registry.EnqueueResult, error)
	// Skip accounts for runs without sending them. It returns the runs' existing records, by ID.
	Skip(ctx context.Context, term int64, runs []registry.Run) (map[string]registry.RunRecord, error)
}

// ErrUndecided means that it is not known yet whether there is a registry.
var ErrUndecided = errors.New("the registry of periodic tasks is not known yet")
