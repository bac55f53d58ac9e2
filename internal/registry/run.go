package registry

import (
	"context"
	"errors"
	"strings"
	"time"

	"tendril/queue"
)

// runRetention is how long the record of a run is kept: longer than any instance looks back for missed runs.
const runRetention = 30 * 24 * time.Hour

// Run is one scheduled run of a task, on its way into a queue.
type Run struct {
	Task string
	// ScheduledAt is the time of the schedule, without jitter, in UTC and whole seconds. For a run that a person
	// requested, it is the time of that request.
	ScheduledAt time.Time
	Path        string    // where on the app its message goes
	DueAt       time.Time // ScheduledAt and the jitter
	// ID names the run: "task@2026-11-20T13:00:00Z", the same on all instances and at every try. A run that a person
	// requested has a longer one.
	ID string
	// Manual marks a run that a person requested. It needs no leader, and accounts for no time of the schedule.
	Manual  bool
	Queue   string // its destination, a name, URL or ARN
	Message queue.Outgoing
}

func (r *Run) fifo() bool { return strings.HasSuffix(r.Queue, ".fifo") }

// check refuses a run that cannot be recorded.
func (r *Run) check(scope Scope) error {
	if err := checkName("run", scope.Key(r.ID)); err != nil {
		return err
	}
	if r.ScheduledAt.IsZero() {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Run %s has no time; give the time that it was scheduled for.", r.ID)
	}
	if r.Manual {
		return nil
	}
	return checkName("task", r.Task)
}

// Start is when a task starts to count if it is not known yet.
type Start struct {
	At time.Time
	// Schedule is the task's schedule and zone, in any words that differ when they do; "" is not compared.
	Schedule string
}

// EnqueueResult describes a run that is in its queue.
type EnqueueResult struct {
	Sent    queue.Sent // the queue's answer; its ID may be "" if Already
	Already bool       // the run was in its queue before
	// Resent reports that an earlier try had no known outcome, so that there may be two messages of the run. It is
	// never set on the embedded queue and on FIFO.
	Resent bool
}

// RunRecord is what a registry knows of one run. The zero value is no record.
type RunRecord struct {
	// Tries is how many tries to send were announced, Term the term of the last one.
	Tries int
	Term  int64
	// Settled reports that there is nothing left to do, because the run was sent as MessageID, or left out if that is "".
	Settled   bool
	MessageID string
}

// Leadership reports whether this instance is the one that enqueues: the term in which it leads; ok is false if it does
// not lead, or if that is not certain.
type Leadership interface {
	Term() (term int64, ok bool)
}

// Sender puts one message into a queue.
type Sender interface {
	// Send sends m to the queue of that name, URL or ARN. An error that is a [queue.Error] with a code other than
	// Unreachable and Closed, or that wraps [ErrNotSent], means that the message was not accepted; after any other the
	// outcome is unknown.
	Send(ctx context.Context, queueName string, m queue.Outgoing) (queue.Sent, error)
}

// ErrUncertain is the error of a run that may or may not be in its queue, where one more try could make more messages
// of it than are promised. It stays as it is.
var ErrUncertain = errors.New("it is not known whether the run was enqueued, and a retry could enqueue it twice")

// ErrNotSent is wrapped by a [Sender] around an error when it is certain that nothing reached the queue, as with a
// connection that was refused. Such a try can be repeated without harm.
var ErrNotSent = errors.New("nothing was sent")
