package periodic

import "time"

// Events contains a scheduler's listeners, which may be nil. They are called without locks, possibly concurrently, and
// must not block.
type Events struct {
	Led      func(Led)
	Enqueued func(Enqueued)
	Skipped  func(Skipped)
	// Failed is called for an unconfirmed try, unless the run is known to be enqueued, and without a task for a failed
	// read of the registry.
	Failed   func(Failed)
	Reloaded func(Reloaded)
	// ClockStepped is called if the clock was set, or the machine suspended, by more than a second.
	ClockStepped func(ClockStepped)
	// Refused is called once per term, if the registry considers this instance's term ended.
	Refused      func(Refused)
	PauseChanged func(PauseChanged)
}

// Led reports that a term has started.
type Led struct{ Term int64 }

// Enqueued reports an enqueued run. Lateness counts from the due time, which includes jitter.
type Enqueued struct {
	Task, ID, Queue, MessageID string
	ScheduledAt                time.Time
	Lateness                   time.Duration
	Manual, Resent             bool // Resent: there may be two messages
}

// Skipped reports Count scheduled times from From to To.
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
	ReasonMissed  Reason = "missed"
	ReasonOverlap Reason = "previous run unfinished"
	ReasonPaused  Reason = "paused"
	// ReasonUncertain means that the run may have been enqueued, because a response was lost or a leader stopped.
	ReasonUncertain Reason = "perhaps enqueued"
	// ReasonAlready means that the run was already enqueued, by another instance or earlier by this one.
	ReasonAlready Reason = "enqueued before"
)

// Failed reports an unconfirmed try, repeated after Retry unless that is 0.
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

// PauseChanged reports whether a task is paused.
type PauseChanged struct {
	Task   string
	Paused bool
}

func call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}
