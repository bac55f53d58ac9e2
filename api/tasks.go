package api

import (
	"time"
)

// TasksStatus describes the periodic tasks of an environment.
type TasksStatus struct {
	File   string `json:"file"`
	Off    string `json:"off,omitempty"` // the reason if no task is scheduled
	Leader Leader `json:"leader"`
	Tasks  []Task `json:"tasks"`
}

// Leader identifies the instance that enqueues the periodic tasks, if known.
type Leader struct {
	Leading bool `json:"leading"`
	// Term counts leader changes. Holder is the current leader, seen AgeSeconds ago.
	Term       int64   `json:"term,omitempty"`
	Holder     string  `json:"holder,omitempty"`
	AgeSeconds float64 `json:"age_seconds,omitempty"`
	// Console is the host:port of the holder's console, as reported; "" if off or unknown.
	Console string `json:"console,omitempty"`
	Error   string `json:"error,omitempty"` // from the latest registry call; "" if it succeeded
	Local   bool   `json:"local,omitempty"` // this instance is configured as the only one, so there is no election
}

// Task is a periodic task and its state.
type Task struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Words describes the Schedule in English. Zone is its time zone.
	Schedule string      `json:"schedule"`
	Words    string      `json:"words"`
	Zone     string      `json:"zone"`
	Next     []time.Time `json:"next,omitempty"` // the next five due times, in the task's zone, without jitter
	// PausedBy and PausedAt are zero if unknown.
	Paused      bool      `json:"paused"`
	PauseReason string    `json:"pause_reason,omitempty"`
	PausedBy    string    `json:"paused_by,omitempty"`
	PausedAt    time.Time `json:"paused_at,omitzero"`
	Overlap     string    `json:"overlap"`         // "allow" or "skip"
	Missed      string    `json:"missed"`          // "one", "all" or "skip"
	Queue       string    `json:"queue,omitempty"` // "" for the environment's first queue
	Last        *TaskRun  `json:"last,omitempty"`
	Failing     int       `json:"failing,omitempty"` // consecutive failures to enqueue
	// FailedRuns counts consecutive failed runs delivered by this instance; LastFailure is the latest reason.
	FailedRuns  int    `json:"failed_runs,omitempty"`
	LastFailure string `json:"last_failure,omitempty"`
	Problem     string `json:"problem,omitempty"` // the reason if the task or its own queue does not work
}

// TaskRun is one run of a task, as known to this instance.
type TaskRun struct {
	Task string `json:"task"`
	// RunID is shared by all messages of the run; "" if another instance enqueued it.
	RunID       string    `json:"fire_id,omitempty"`
	Manual      bool      `json:"manual,omitempty"` // requested by a person
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	// EnqueuedAt and LatenessMS are zero unless this instance enqueued the run.
	EnqueuedAt time.Time `json:"enqueued_at,omitzero"`
	// LatenessMS is in milliseconds from the due time to enqueueing, including jitter.
	LatenessMS int64  `json:"lateness_ms"`
	Skipped    string `json:"skipped,omitempty"` // the reason if the run was skipped
	MessageID  string `json:"message_id,omitempty"`
	Resent     bool   `json:"resent,omitempty"` // may have been enqueued twice
	// Attempts counts deliveries by this instance. Outcome, Status, Reason and DurationMS describe the last one, as in
	// [Delivery].
	Attempts   int       `json:"attempts"`
	Outcome    string    `json:"outcome,omitempty"`
	Status     int       `json:"status,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// RunList is the answer to GET /api/v1/history and /api/v1/tasks/{name}/history.
type RunList struct {
	Runs []TaskRun `json:"runs"`
}
