package api

import (
	"time"
)

// TasksStatus describes the periodic tasks of an environment.
type TasksStatus struct {
	File   string `json:"file"`
	Off    string `json:"off,omitempty"` // the reason no task is scheduled, or ""
	Leader Leader `json:"leader"`
	Tasks  []Task `json:"tasks"`
}

// Leader is the instance that enqueues periodic runs, if known.
type Leader struct {
	Leading bool `json:"leading"`
	// Term counts changes of the leader. Holder is the current one, last seen AgeSeconds ago.
	Term       int64   `json:"term,omitempty"`
	Holder     string  `json:"holder,omitempty"`
	AgeSeconds float64 `json:"age_seconds,omitempty"`
	// Console is the host:port of the leader's console, as reported by the leader; "" if off or unknown.
	Console string `json:"console,omitempty"`
	Error   string `json:"error,omitempty"` // from the latest registry call; "" if it succeeded
	Local   bool   `json:"local,omitempty"` // this instance is configured as the only one, so no leader is elected
}

// Task is a periodic task and its state.
type Task struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Words describes Schedule in English. Zone is its time zone.
	Schedule string      `json:"schedule"`
	Words    string      `json:"words"`
	Zone     string      `json:"zone"`
	Next     []time.Time `json:"next,omitempty"` // next five due times, in the task's zone, without jitter
	// PausedBy and PausedAt are zero if unknown.
	Paused      bool      `json:"paused"`
	PauseReason string    `json:"pause_reason,omitempty"`
	PausedBy    string    `json:"paused_by,omitempty"`
	PausedAt    time.Time `json:"paused_at,omitzero"`
	Overlap     string    `json:"overlap"`         // "allow" or "skip"
	Missed      string    `json:"missed"`          // "one", "all" or "skip"
	Queue       string    `json:"queue,omitempty"` // "" for the environment's first queue
	Last        *TaskRun  `json:"last,omitempty"`
	Failing     int       `json:"failing,omitempty"` // consecutive failures to enqueue a run
	// FailedRuns counts consecutive failed runs delivered by this instance. LastFailure is the reason of the latest.
	FailedRuns  int    `json:"failed_runs,omitempty"`
	LastFailure string `json:"last_failure,omitempty"`
	Problem     string `json:"problem,omitempty"` // the reason the task or its own queue does not work, or ""
}

// TaskRun is a run of a task, as known to this instance.
type TaskRun struct {
	Task string `json:"task"`
	// RunID is the same in all messages of the run; "" if another instance, or a try without a response, enqueued it.
	RunID       string    `json:"fire_id,omitempty"`
	Manual      bool      `json:"manual,omitempty"`
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	// EnqueuedAt is zero unless this instance enqueued the run.
	EnqueuedAt time.Time `json:"enqueued_at,omitzero"`
	// LatenessMS is the time from the due time, which includes jitter, to enqueueing; 0 if EnqueuedAt is zero.
	LatenessMS int64  `json:"lateness_ms"`
	Skipped    string `json:"skipped,omitempty"` // the reason the run was skipped, or ""
	MessageID  string `json:"message_id,omitempty"`
	Resent     bool   `json:"resent,omitempty"` // the run may have been enqueued twice
	// Attempts is the receive count of the last delivery by this instance. Outcome, Status, Reason and DurationMS are
	// that delivery's, as in [Delivery].
	Attempts   int       `json:"attempts"`
	Outcome    string    `json:"outcome,omitempty"`
	Status     int       `json:"status,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// RunList is the response to GET /api/v1/history and /api/v1/tasks/{name}/history.
type RunList struct {
	Runs []TaskRun `json:"runs"`
}
