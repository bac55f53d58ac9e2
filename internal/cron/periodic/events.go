package periodic

import "time"

// Events contains a scheduler's listeners. Each may be nil. They are called without locks held, possibly
// concurrently, and must not block.
type Events struct {
	// Led is called when a term starts.
	Led func(Led)
	// Enqueued is called for each run enqueued by this instance.
	Enqueued func(Enqueued)
	// Skipped is called for scheduled times of a task for which nothing was enqueued.
	Skipped func(Skipped)
	// Failed is called for a try that was not confirmed or, without a task, a failed read of the registry.
	Failed func(Failed)
	// Reloaded is called after each change of the tasks.
	Reloaded func(Reloaded)
	// ClockStepped is called when wall clock and monotonic clock differ by more than a second since the last check:
	// the clock was set or the machine was suspended.
	ClockStepped func(ClockStepped)
	// Refused is called, at most once per term, when the registry considers a term ended that this instance still
	// holds. No task is enqueued until the two agree.
	Refused func(Refused)
	// Held is called when a task is paused or resumed.
	Held func(Held)
}

// Led reports that a term has started.
type Led struct{ Term int64 }

// Enqueued reports an enqueued run. Lateness counts from its due time, including jitter. Took is the duration of the
// call.
type Enqueued struct {
	Task, ID, Queue, MessageID string
	ScheduledAt                time.Time
	Lateness, Took             time.Duration
	// Manual runs were requested by a user. Resent runs may have two messages.
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

// Reasons.
const (
	ReasonMissed  Reason = "missed"                  // too late for the task's policy and grace
	ReasonOverlap Reason = "previous run unfinished" // of the same task
	ReasonPaused  Reason = "paused"
	// ReasonUncertain: the run may have been enqueued and is not tried again, because a response was lost or a leader
	// stopped between sending and recording it.
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

// Reloaded reports numbers of tasks: the current total and the changes.
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
