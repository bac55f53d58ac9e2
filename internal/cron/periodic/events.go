package periodic

import "time"

// Events are a scheduler's listeners: the only way to watch it, besides
// [Scheduler.Status] and [Scheduler.History]. Every field may be nil. They are
// called without locks held, from several goroutines, and must not block.
type Events struct {
	// Led follows the start of a term.
	Led func(Led)
	// Enqueued follows each run that is in its queue because of this instance.
	Enqueued func(Enqueued)
	// Skipped is one or more times of a task for which nothing was enqueued.
	Skipped func(Skipped)
	// Failed is a try that was not confirmed, of a run or, with an empty task,
	// of reading the registry.
	Failed func(Failed)
	// Reloaded follows each change of the tasks.
	Reloaded func(Reloaded)
	// ClockStepped says that the time of day and the passing of time differ by
	// more than a second since the last look: the clock was set, or the machine
	// stood still.
	ClockStepped func(ClockStepped)
	// Refused means that the registry considers a term ended in which this instance
	// leads as far as it knows: no task is enqueued until the two agree. It is
	// called once in each term.
	Refused func(Refused)
	// Held follows each pause and resume of a task.
	Held func(Held)
}

// Led reports that a term has started.
type Led struct{ Term int64 }

// Enqueued is a run that was enqueued. Lateness counts from the time it was due,
// jitter included; Took is the time the enqueuing took.
type Enqueued struct {
	Task, ID, Queue, MessageID string
	ScheduledAt                time.Time
	Lateness, Took             time.Duration
	// Manual: a person asked for it. Resent: there may be two messages of it.
	Manual, Resent bool
}

// Skipped are Count times of a task, the first From and the last To.
type Skipped struct {
	Task     string
	From, To time.Time
	Count    int
	Reason   Reason
}

// Reason says why a run was left out.
type Reason string

// The reasons.
const (
	ReasonMissed  Reason = "missed"                  // found too late for its task's policy and grace
	ReasonOverlap Reason = "previous run unfinished" // of the same task
	ReasonPaused  Reason = "paused"                  // the task was
	// ReasonUncertain: it may have been enqueued, and was not tried again: an
	// answer was lost, or a leader ended between sending and noting it.
	ReasonUncertain Reason = "perhaps enqueued"
	// ReasonAlready: it was enqueued before, by another instance or before the
	// clock was set back.
	ReasonAlready Reason = "enqueued before"
)

// Failed is a try that was not confirmed; it is repeated after Retry, as long
// as the grace allows.
type Failed struct {
	Task, ID string
	Err      error
	Retry    time.Duration
}

// Reloaded counts the tasks that there are now, and those that are new, gone
// or different.
type Reloaded struct{ Tasks, Added, Removed, Changed int }

// ClockStepped is how far the time of day ran ahead (positive) or back.
type ClockStepped struct{ By time.Duration }

// Refused reports a term that the registry considers ended.
type Refused struct {
	Term int64
	Err  error
}

// Held reports whether a task is paused now.
type Held struct {
	Task   string
	Paused bool
}

// call calls a listener, if there is one.
func call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}
