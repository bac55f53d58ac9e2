package periodic

import "time"

// Events contains a scheduler's listeners. Each may be nil. They are called without locks held, possibly
// concurrently, and must not block.
type Events struct {
	// a term starts
	Led func(Led)
	// this instance enqueued a run
	Enqueued func(Enqueued)
	// nothing was enqueued for scheduled times of a task
	Skipped func(Skipped)
	// a try was not confirmed or, without a task, a read of the registry failed
	Failed func(Failed)
	// the tasks changed
	Reloaded func(Reloaded)
	// the clock was set or the machine was suspended, for more than a second
	ClockStepped func(ClockStepped)
	// Refused is called, at most once per term, when the registry considers a term ended that this instance still
	// holds.
	Refused func(Refused)
	// a task was paused or resumed
	Held func(Held)
}

// Led reports that a term has started.
type Led struct{ Term int64 }

// Enqueued reports an enqueued run. Lateness counts from its due time, including jitter.
type Enqueued struct {
	Task, ID, Queue, MessageID string
	ScheduledAt                time.Time
	Lateness, Took             time.Duration
	// Resent runs may have two messages.
	Manual, Resent bool
}

// Skipped reports Count scheduled times of a task between From and To, inclusive.
type Skipped struct {
	Task     string
	From, To time.Time
	Count    int
	Reason   Reason
}

// Reason is why a run was skipped.
type Reason string

// Reasons for skipping a run.
const (
	ReasonMissed  Reason = "missed"                  // too late for the task's policy and grace
	ReasonOverlap Reason = "previous run unfinished" // of the same task
	ReasonPaused  Reason = "paused"
	// ReasonUncertain: the run may have been enqueued, because a response was lost or a leader stopped between
	// sending and recording it.
	ReasonUncertain Reason = "perhaps enqueued"
	// ReasonAlready: enqueued by another instance, or before the clock was set back.
	ReasonAlready Reason = "enqueued before"
)

// Failed reports a try that was not confirmed. It is repeated after Retry, within the grace.
type Failed struct {
	Task, ID string
	Err      error
	Retry    time.Duration
}

// Reloaded reports the number of tasks and of changes.
type Reloaded struct{ Tasks, Added, Removed, Changed int }

// ClockStepped reports how far the wall clock moved ahead (positive) or back.
type ClockStepped struct{ By time.Duration }

// Refused reports a term that the registry considers ended.
type Refused struct {
	Term int64
	Err  error
}

// Held reports whether a task is paused.
type Held struct {
	Task   string
	Paused bool
}

func call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}
