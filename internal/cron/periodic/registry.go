package periodic

import (
	"context"
	"errors"
	"strings"
	"time"

	"tendril/queue"
)

// LeaseName is the lease by which the instances that share a queue elect the leader, who enqueues.
func LeaseName(queueName string) string { return "periodic:" + queueName }

// RunningLease is the lease of whoever works on a run of a task that must not overlap.
func RunningLease(queueName, task string) string { return "running:" + queueName + "/" + task }

// VersionLease is the lease of the instance that runs the leader_only commands of a version of the app.
func VersionLease(queueName, version string) string { return "version:" + queueName + "/" + version }

// OwnsLease reports whether a lease is one that the instances which share a queue make in its registry.
func OwnsLease(queueName, lease string) bool {
	return lease == LeaseName(queueName) || strings.HasPrefix(lease, RunningLease(queueName, "")) ||
		strings.HasPrefix(lease, VersionLease(queueName, ""))
}

// Leadership tells whether this instance is the one that enqueues.
type Leadership interface {
	// Term returns the term in which this instance leads; ok is false
	// when it is not, or when that is not certain. It is asked right before
	// each effect.
	Term() (term int64, ok bool)
	// Changed returns a channel that is closed when Term next changes.
	Changed() <-chan struct{}
}

// Registry remembers the runs of tasks and puts them into queues. A term that
// is not current any more is refused with [queue.ErrStaleTerm]; term 0 is for
// runs that a person asked for, and is always current. Methods are called from
// several goroutines, one at a time for each task.
type Registry interface {
	// Since returns the times of each task. A task that is not known is entered
	// with its start, whose time both are then. One that is known with another
	// schedule is accounted for up to its start at least, and exists from then:
	// earlier times of the new schedule were never due. One that is known with the
	// same schedule exists from its start, if that is earlier: its clock was set back.
	Since(ctx context.Context, term int64, starts map[string]Start) (map[string]queue.TaskTimes, error)
	// Enqueue sends the run, unless it was sent before, and accounts for the
	// task's times up to f.ScheduledAt, unless f is manual. It is called again
	// with the same run after an error, except after [ErrUncertain].
	Enqueue(ctx context.Context, term int64, f ScheduledRun) (EnqueueResult, error)
	// Skip accounts for the task's times up to the last of runs without sending.
	// runs are of one task, in order, at most 1000. It returns the records of
	// those that were sent or claimed before, by id.
	Skip(ctx context.Context, term int64, runs []ScheduledRun) (map[string]Claim, error)
}

// Start says from when on a task counts where it is not known yet.
type Start struct {
	At time.Time
	// Schedule is the task's schedule and zone, in words that differ when they do.
	Schedule string
}

// EnqueueResult is what a [Registry] answers about a run that is in its queue.
type EnqueueResult struct {
	Sent    queue.Sent // the queue's answer; its ID may be "" when Already
	Already bool       // this run was in its queue before
	// Resent tells that an earlier try had no known outcome, so that there may
	// be two messages of this run. Never on the embedded queue and on FIFO.
	Resent bool
}

// ErrUncertain is the error of a run that may or may not be in its queue, where
// one more try could make more messages of it than are promised. It stays as
// it is.
var ErrUncertain = errors.New("it is not known whether the run was enqueued, and a retry could enqueue it twice")

// ErrUndecided says that it is not known yet whether there is a registry.
var ErrUndecided = errors.New("the registry of periodic tasks is not known yet")

// ErrNotSent is wrapped by a [Sender] around an error when it is certain that
// nothing reached the queue, as with a connection that was refused. Such a try
// can be repeated without harm.
var ErrNotSent = errors.New("nothing was sent")

// Sender puts one message into a queue.
type Sender interface {
	// Send sends m to the queue of that name, URL or ARN. An error that is a
	// [queue.Error], other than one of the codes Unreachable and Closed, or that
	// wraps [ErrNotSent] says that the message was not accepted; after any
	// other the outcome is unknown.
	Send(ctx context.Context, queueName string, m queue.Outgoing) (queue.Sent, error)
}

// Store keeps the records of runs for [Claims]. Every method is atomic. One
// that is given a term which is not current any more may refuse it with
// [queue.ErrStaleTerm]; term 0 is always current. A call that reported an error
// may have been applied all the same.
type Store interface {
	// Since is as in [Registry].
	Since(ctx context.Context, term int64, starts map[string]Start) (map[string]queue.TaskTimes, error)
	// Claim enters that try number try, from 1, of run f is about to be made in
	// term, provided that the record has try-1 tries (0 when there is none) and
	// is not settled; else it changes nothing. It returns the record as it is
	// then. Records are kept for a day at least after f.ScheduledAt.
	Claim(ctx context.Context, term int64, f ScheduledRun, try int) (Claim, error)
	// Mark settles f: it was sent as messageID, or is left out when that is "",
	// and accounts for the task's times up to f.ScheduledAt unless f is manual.
	// A settled record stays as it is.
	Mark(ctx context.Context, term int64, f ScheduledRun, messageID string) error
	// Records returns the records of those of runs that have one, by id.
	Records(ctx context.Context, runs []ScheduledRun) (map[string]Claim, error)
}

// Claim is the record of one run in a [Store]. The zero value is not a record.
type Claim struct {
	// Tries is how many tries to send were announced, Term the term of the
	// last one.
	Tries int
	Term  int64
	// Settled tells that there is nothing left to do, because the run was sent
	// as MessageID, or left out when that is "".
	Settled   bool
	MessageID string
}
