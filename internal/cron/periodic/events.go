package periodic

import "time"

// Events contains a scheduler's listeners. Each may be nil. They are called without locks held, possibly
// concurrently, and must not block.
type Events struct {
	// Led is called when a term of this instance starts.
	Led func(Led)
	// Enqueued is called for runs that this instance has enqueued.
	Enqueued func(Enqueued)
	// Skipped is called for scheduled times at which nothing was enqueued.
	Skipped func(Skipped)
	// Failed is called when a try is not confirmed or, without a task, when reading the registry fails.
	Failed   func(Failed)
	Reloaded func(Reloaded)
	// ClockStepped is called when the clock was set, or the machine was suspended, for more than a second.
	ClockStepped func(ClockStepped)
	// Refused is called at most once per term, if the registry considers a term ended that this instance still holds.
	Refused func(Refused)
	Held    func(Held)
}

// Led reports that a term has started.
type Led struct{ Term int64 }

// Enqueued reports an enqueued run. Lateness is the time since the run was due, including jitter.
type Enqueued struct {
	Task, ID, Queue, MessageID string
	ScheduledAt                time.Time
	Lateness                   time.Duration
	// Resent means that there may be two messages.
	Manual, Resent bool
}

// Skipped reports Count scheduled times of a task between From and To, inclusive.
type Skipped struct {
	Task     string
	From, To time.Time
	Count    int
	Reason   Reason
}

// Reason says why a run was skipped.
type Reason string

// The reasons for skipping a run.
const (
	ReasonMissed  Reason = "missed" // by the task's policy and grace
	ReasonOverlap Reason = "previous run unfinished"
	ReasonPaused  Reason = "paused"
	// ReasonUncertain means that the run may have been enqueued: a response was lost, or a leader stopped between
	// sending and recording it.
	ReasonUncertain Reason = "perhaps enqueued"
	// ReasonAlready means that the run was enqueued by another instance, or before the clock was set back.
	ReasonAlready Reason = "enqueued before"
)

// Failed reports a try that was not confirmed. Unless Retry is 0, the run is tried again after Retry, within the task's
// grace.
type Failed struct {
	Task, ID string
	Err      error
	Retry    time.Duration
}

// Reloaded reports the number of tasks and of changed tasks.
type Reloaded struct{ Tasks, Added, Removed, Changed int }

// ClockStepped reports how far the wall clock was moved: forward if positive, back if negative.
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
