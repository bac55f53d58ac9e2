package health

import "time"

// inputs are the inputs of the rules. A zero field produces no cause.
type inputs struct {
	Now, Started time.Time
	StartLimit   time.Duration // until the app is ready; 0 means 10 min

	App        appInputs
	Operation  Operation
	Deployment Deployment
	Queues     []queueInputs
	// Store is the reason that the embedded queues accept no messages, or "".
	Store    string
	Leader   LeaderState
	Problems []StoredProblem
	Tasks    []TaskState
	Host     Reading
	// Scaling is the reason that the group keeps its size although this instance wants to change it, or "".
	Scaling string
	DataDir DataDirState
	// RegistryLost is the reason that receiving is stopped while the shared registry is unreachable, or "".
	RegistryLost string

	// NoLeader is the start of the period without a leader; zero if there is a leader.
	NoLeader           time.Time
	IgnoreClientErrors bool // excludes 4xx responses
	Draining           bool // the environment is shutting down
}

type appInputs struct {
	// Reason and Since explain why the app is not Ready.
	Ready     bool
	Reason    string
	Since     time.Time
	WasReady  bool      // since startup
	Queues    []string  // receive nothing because the app is not ready
	Processes []Process // run by tendril
}

// Process is a process of the app.
type Process struct {
	Name string
	// GivenUp means that the process is down because it failed too often. RetryAfter is the interval between restart
	// attempts, or 0.
	GivenUp    bool
	RetryAfter time.Duration
	// Restarts counts restarts after failures: since startup in an [AppState], and in the last five minutes in
	// inputs.
	Restarts int
	LastExit string // such as "exit status 1"; "" if unknown
}

// Operation is a change of the environment in progress.
type Operation struct {
	Name  string // such as "application deployment"; "" if nothing is in progress
	Since time.Time
	Limit time.Duration // 0 means 10 min
}

// Deployment is the last completed deployment.
type Deployment struct {
	Version string // "" if there has not been one
	Ended   time.Time
	Failed  string // reason for the rollback; "" if it succeeded
}

type queueInputs struct {
	QueueState
	// Deliveries covers the last five minutes. P95 is the 95th percentile of the duration of answered deliveries.
	Deliveries counts
	P95        time.Duration
	LastFailed Failure
	// NewDeadLetters and Expired cover the last five minutes. Expired counts messages that exceeded their retention
	// period.
	NewDeadLetters, Expired int64
	Poll                    pollFailure
}

// Failure is a failed delivery.
type Failure struct{ MessageID, Reason string }

// StoredProblem describes damaged or unprocessed messages in a queue's storage.
type StoredProblem struct{ Queue, Text, Remedy string }

// pollFailure is the reason that receiving fails. Final means that retrying is pointless.
type pollFailure struct {
	problem Problem
	Final   bool
}

// QueueState is the state of one queue and its worker.
type QueueState struct {
	Name string
	// Embedded means that this instance stores the queue.
	Embedded  bool
	Receiving bool
	// Paused means that a user paused receiving. PausedBy and PauseReason may be "".
	Paused                bool
	PausedBy, PauseReason string
	PausedAt              time.Time
	// Why is the reason that messages wait, or "".
	Why string
	// InWork and DeliveryLimit are 0 if unknown.
	InWork        int
	DeliveryLimit time.Duration
	// NotReady lists why the target receives no messages.
	NotReady       []Problem
	DeletesRefused Problem
	// Known means that the fields below are valid. Taken is when they were read; zero means now.
	Known             bool
	Taken             time.Time
	Backlog           int64
	Oldest, Retention time.Duration
	// DeadLettered counts the messages dead-lettered so far. DeadLetters and DeadLettered are valid if HasDeadLetters
	// is true.
	DeadLetters, DeadLettered int64
	HasDeadLetters            bool
	DeadLetterQueue           string
}

// Problem is a problem and when it started. The zero value means no problem.
type Problem struct {
	Since  time.Time
	Reason string
}

// AppState is the state of an app that tendril runs.
type AppState struct {
	// NotReady is the failed readiness check; "" if unknown.
	NotReady   string
	LastReady  time.Time
	Processes  []Process
	Operation  Operation
	Deployment Deployment
}

// TaskState describes a periodic task that is paused or failing.
type TaskState struct {
	Name string
	// Paused means that scheduled runs are skipped. PausedBy and PauseReason may be "".
	Paused                bool
	PausedBy, PauseReason string
	PausedAt              time.Time
	// Problem is the reason that the task cannot be enqueued, or "".
	Problem     string
	FailedRuns  int // consecutive failures
	LastFailure string
}

// DataDirState is the state of the data directory.
type DataDirState struct {
	// Lost says how the directory differs from the opened one, or is "".
	Lost     string
	Embedded bool
}

// LeaderState is what this instance knows about the leader of the periodic tasks.
type LeaderState struct {
	Tasks int // number of periodic tasks
	// Known means that there is a leader or none is needed. Off means that there can be no leader before a restart.
	Known, Off bool
	Error      string
}
