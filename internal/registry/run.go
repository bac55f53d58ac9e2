package registry

import (
	"context"
	"errors"
	"time"

	"tendril/queue"
)

// runRetention exceeds the period searched for missed runs.
const runRetention = 30 * 24 * time.Hour

// Run is a scheduled run of a task.
type Run struct {
	Task string
	// ScheduledAt is in UTC and whole seconds, without jitter; for a manual run, the time of the request.
	ScheduledAt time.Time
	Path        string
	DueAt       time.Time
	// ID, such as "task@2026-11-20T13:00:00Z", is the same on all instances and in all tries.
	ID string
	// A Manual run, requested by a person, needs no leader and does not advance the schedule.
	Manual  bool
	Queue   string // name, URL or ARN
	Message queue.Outgoing
}

func (r *Run) check(scope Scope) error {
	if err := checkName("run", scope.Key(r.ID)); err != nil {
		return err
	}
	if r.ScheduledAt.IsZero() {
		return errInvalid("Run %s has no time; use its scheduled time.", r.ID)
	}
	if r.Manual {
		return nil
	}
	return checkName("task", r.Task)
}

// Start is the start of a new task or a changed schedule.
type Start struct {
	At time.Time
	// Schedule identifies the schedule and the time zone; may be "".
	Schedule string
}

// EnqueueResult describes an enqueued run.
type EnqueueResult struct {
	Sent    queue.Sent // ID may be "" if Already is set
	Already bool       // enqueued by an earlier call
	// Resent means that there may be two messages, because an earlier try's outcome is unknown. It is never set for
	// embedded and FIFO queues.
	Resent bool
}

// RunRecord is the stored state of a run.
type RunRecord struct {
	// Tries is the number of announced tries. Term is the term of the last try.
	Tries int
	Term  int64
	// A Settled run was sent as the message MessageID or, if that is "", skipped.
	Settled   bool
	MessageID string
}

// Leadership returns this instance's term. ok is false if it may not be the leader.
type Leadership interface {
	Term() (term int64, ok bool)
}

// Sender sends messages.
type Sender interface {
	// Send sends m to a queue, by name, URL or ARN. The message was not accepted if the error wraps [ErrNotSent], is a
	// failed dial, or is a [queue.Error] with a code other than Unreachable and Closed. After any other error, the
	// outcome is unknown.
	Send(ctx context.Context, queueName string, m queue.Outgoing) (queue.Sent, error)
}

// ErrUncertain means that a run may have been enqueued, so that another try could duplicate its message.
var ErrUncertain = errors.New("the run may have been enqueued, and a retry could enqueue it twice")

// ErrNotSent is wrapped by a [Sender]'s error if the message cannot have reached the queue.
var ErrNotSent = errors.New("nothing was sent")
