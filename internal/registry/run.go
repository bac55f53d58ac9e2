package registry

import (
	"context"
	"errors"
	"strings"
	"time"

	"tendril/queue"
)

// longer than missed runs are searched for
const runRetention = 30 * 24 * time.Hour

// Run is a scheduled run of a task.
type Run struct {
	Task string
	// Without jitter, in UTC and whole seconds; for manual runs, the time of the request.
	ScheduledAt time.Time
	Path        string    // request path on the app
	DueAt       time.Time // ScheduledAt plus jitter
	// The same on all instances and at every try, such as "task@2026-11-20T13:00:00Z". Manual runs have longer IDs.
	ID string
	// Manual marks a run requested by a user. It needs no leader and does not advance the schedule.
	Manual  bool
	Queue   string // name, URL or ARN
	Message queue.Outgoing
}

func (r *Run) fifo() bool { return strings.HasSuffix(r.Queue, ".fifo") }

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

// Start describes when a new task's schedule begins.
type Start struct {
	At time.Time
	// Identifies the schedule and time zone; compared with the previous one unless "".
	Schedule string
}

// EnqueueResult describes an enqueued run.
type EnqueueResult struct {
	Sent    queue.Sent // the queue's response; its ID may be "" if Already
	Already bool       // enqueued before
	// Resent means that there may be two messages, because an earlier try had an unknown outcome. It is never set for
	// embedded and FIFO queues.
	Resent bool
}

// RunRecord is the stored state of a run.
type RunRecord struct {
	// Announced tries, and the last one's term.
	Tries int
	Term  int64
	// Settled means that the run was sent as MessageID, or skipped if that is "".
	Settled   bool
	MessageID string
}

// Leadership returns the term in which this instance leads; ok is false if that is not certain.
type Leadership interface {
	Term() (term int64, ok bool)
}

// Sender sends messages.
type Sender interface {
	// Send sends m to a queue given by name, URL or ARN. After a [queue.Error] with a code other than Unreachable and
	// Closed, or an error that wraps [ErrNotSent], the message was not accepted. After other errors the outcome is
	// unknown.
	Send(ctx context.Context, queueName string, m queue.Outgoing) (queue.Sent, error)
}

// ErrUncertain means that a run may have been enqueued, and another try could send too many messages.
var ErrUncertain = errors.New("the run may have been enqueued, and a retry could enqueue it twice")

// ErrNotSent is wrapped by a [Sender]'s error if certainly nothing reached the queue, so that the send can be
// repeated.
var ErrNotSent = errors.New("nothing was sent")
