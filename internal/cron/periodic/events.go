package periodic

import "time"

// Events contains a scheduler's listeners, which may be nil. They are called without locks held, possibly concurrently,
// and must not block.
type Events struct {
	// Led is called when a term of this instance starts.
	Led      func(Led)
	Enqueued func(Enqueued)
	// Skipped is called for scheduled times at which nothing was enqueued.
	Skipped func(Skipped)
	// Failed is called for a try that was not confirmed or, without a task, if reading the registry fails.
	Failed   func(Failed)
	Reloaded func(Reloaded)
	// ClockStepped is called if the clock was set, or the machine suspended, for more than a second.
	ClockStepped func(ClockStepped)
	// Refused is called once per term, if the registry considers this instance's term ended.
	Refused func(Refused)
	Held    func(Held)
}

// Led reports that a term has started.
type Led struct{ Term int64 }

// Enqueued reports an enqueued run. Lateness is the time since it was due, including jitter.
type Enqueued struct {
	Task, ID, Queue, MessageID string
	ScheduledAt                time.Time
	Lateness                   time.Duration
	Manual, Resent             bool // Resent: there may be two messages
}

// Skipped reports Count scheduled times between From and To, inclusive.
type Skipped struct {
	Task     string
	From, To time.Time
	Count    int
	Reason   Reason
}

// Reason is the reason for skipping a run.
type Reason string

// Reasons for skipping a run.
const (
	ReasonMissed  Reason = "missed" // by policy or grace
	ReasonOverlap Reason = "previous run unfinished"
	ReasonPaused  Reason = "paused"
	// ReasonUncertain means that the run may have been enqueued: a response was lost, or a leader stopped before
	// recording it.
	ReasonUncertain Reason = "perhaps enqueued"
	// ReasonAlready means that another instance enqueued the run, or this one did before the clock was set back.
	ReasonAlready Reason = "enqueued before"
)

// Failed reports a try that was not confirmed. It is repeated after Retry, unless that is 0.
type Failed struct {
	Task, ID string
	Err      error
	Retry    time.Duration
}

// Reloaded counts tasks and their changes.
type Reloaded struct{ Tasks, Added, Removed, Changed int }

// ClockStepped reports how far the wall clock moved; back if negative.
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
