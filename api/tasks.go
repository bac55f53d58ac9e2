package api

import (
	"time"
)

// TasksStatus is what an environment says of its periodic tasks.
type TasksStatus struct {
	// File is the path of the file that the tasks are from, in their order there.
	File string `json:"file"`
	// Off says why nothing is scheduled, and what to do; "" when tasks are.
	Off    string `json:"off,omitempty"`
	Leader Leader `json:"leader"`
	Tasks  []Task `json:"tasks"`
}

// Leader says which instance enqueues the periodic tasks, as far as this one
// knows.
type Leader struct {
	Leading bool `json:"leading"` // whether this instance does
	// Term counts the changes of the leader, and Holder names the instance that leads; 0
	// and "" when none is known. AgeSeconds is how long ago Holder was seen to lead.
	Term       int64   `json:"term,omitempty"`
	Holder     string  `json:"holder,omitempty"`
	AgeSeconds float64 `json:"age_seconds,omitempty"`
	// Console is the host:port of the holder's console, as it names it; "" when it is off, or not known.
	Console string `json:"console,omitempty"`
	// Error is the most recent trouble with the registry; "" when the last call
	// went well.
	Error string `json:"error,omitempty"`
	// Local is whether this instance was declared to be the only one, so that
	// none is elected.
	Local bool `json:"local,omitempty"`
}

// Task is one periodic task as it stands.
type Task struct {
	Name string `json:"name"`
	URL  string `json:"url"` // the path that is posted to
	// Schedule is the expression as it was written; Words says it in English,
	// with Zone, the name of the time zone that it speaks of.
	Schedule string `json:"schedule"`
	Words    string `json:"words"`
	Zone     string `json:"zone"`
	// Next are the five times at which it is due next, in its zone, without
	// jitter.
	Next []time.Time `json:"next,omitempty"`
	// Paused is whether its runs are left out, PauseReason what the person said.
	Paused      bool   `json:"paused"`
	PauseReason string `json:"pause_reason,omitempty"`
	Overlap     string `json:"overlap"`         // "allow" or "skip"
	Missed      string `json:"missed"`          // "one", "all" or "skip"
	Queue       string `json:"queue,omitempty"` // "" is the environment's own
	// Last is the newest run that is remembered; nil when there is none.
	Last    *TaskRun `json:"last,omitempty"`
	Failing int      `json:"failing,omitempty"` // tries to enqueue it in a row
	// FailedRuns is how many of its last runs failed in a row, as far as their messages were delivered here, and
	// LastFailure why the newest of them did.
	FailedRuns  int    `json:"failed_runs,omitempty"`
	LastFailure string `json:"last_failure,omitempty"`
	// Problem is what keeps the task from being enqueued, or from its own queue; "" for nothing.
	Problem string `json:"problem,omitempty"`
}

// TaskRun is one run of a task, as far as this instance knows of it.
type TaskRun struct {
	Task string `json:"task"`
	// RunID is the same for every message of this run; "" when another instance
	// enqueued it.
	RunID  string `json:"fire_id,omitempty"`
	Manual bool   `json:"manual,omitempty"` // a person asked for it
	// ScheduledAt is the time at which the task was due. EnqueuedAt is zero, and
	// LatenessMS 0, when another instance enqueued the run or nobody did.
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	EnqueuedAt  time.Time `json:"enqueued_at,omitzero"`
	// LatenessMS is by how many milliseconds it was enqueued later than it was
	// due, jitter included.
	LatenessMS int64 `json:"lateness_ms"`
	// Skipped says why it was left out; "" when it was not.
	Skipped   string `json:"skipped,omitempty"`
	MessageID string `json:"message_id,omitempty"`
	Resent    bool   `json:"resent,omitempty"` // there may be two messages of it
	// Attempts counts deliveries here. Outcome, Status, Reason and DurationMS are those of the
	// last one, as in [Delivery].
	Attempts   int       `json:"attempts"`
	Outcome    string    `json:"outcome,omitempty"`
	Status     int       `json:"status,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// RunList is the answer of the histories.
type RunList struct {
	Runs []TaskRun `json:"runs"`
}
