package health

import "time"

// A zero field produces no cause.
type inputs struct {
	Now, Started time.Time
	// The app may take that long to become ready; 0 means 10 min.
	StartLimit time.Duration

	App        appInputs
	Operation  Operation
	Deployment Deployment
	Queues     []queueInputs
	// Store is why the embedded queues accept no messages, or "".
	Store    string
	Leader   LeaderState
	Problems []StoredProblem
	Tasks    []TaskState
	Host     Reading
	// Scaling is why the group keeps its size although this instance wants another, or "".
	Scaling string
	DataDir DataDirState
	// RegistryLost is why receiving is stopped until the shared registry answers, or "".
	RegistryLost string

	// Start of the time without a leader, or zero.
	NoLeader time.Time
	// 4xx responses are excluded.
	IgnoreClientErrors bool
	Draining           bool // the environment is shutting down
}

type appInputs struct {
	// Reason and Since explain why the app does not accept messages.
	Ready     bool
	Reason    string
	Since     time.Time
	WasReady  bool      // since startup
	Queues    []string  // receive nothing while the app is not ready
	Processes []Process // run by tendril
}

// Process is one process of the app.
type Process struct {
	Name string
	// A process is GivenUp if it is down because it failed too often. RetryAfter is the interval between attempts to
	// start it, or 0.
	GivenUp    bool
	RetryAfter time.Duration
	// Restarts after a failure: since startup in an [AppState], in the last five minutes in inputs.
	Restarts int
	LastExit string // such as "exit status 1"; "" if unknown
}

// Operation is a change of the environment that is in progress.
type Operation struct {
	Name  string // such as "application deployment"; "" if nothing is in progress
	Since time.Time
	Limit time.Duration // 0 means 10 min
}

// Deployment is the last deployment that ended.
type Deployment struct {
	Version string // "" if there was none
	Ended   time.Time
	Failed  string // why it was rolled back
}

type queueInputs struct {
	QueueState
	// Deliveries covers the last five minutes. P95 is the 95th percentile of the duration of answered deliveries.
	Deliveries counts
	P95        time.Duration
	LastFailed Failure
	// Both cover the last five minutes. Expired messages were deleted at the end of their retention period.
	NewDeadLetters, Expired int64
	Poll                    pollFailure
}

// Failure is a failed delivery.
type Failure struct{ MessageID, Reason string }

// StoredProblem describes damaged or unprocessed stored messages of a queue.
type StoredProblem struct{ Queue, Text, Remedy string }

// If receiving fails for a final reason, retrying is pointless.
type pollFailure struct {
	problem Problem
	Final   bool
}

// QueueState is the state of one queue and its worker.
type QueueState struct {
	Name string
	// This instance stores the queue.
	Embedded  bool
	Receiving bool
	// A user paused receiving. PausedBy and PauseReason may be "".
	Paused                bool
	PausedBy, PauseReason string
	PausedAt              time.Time
	// Why is the reason that messages wait, or "".
	Why string
	// 0 if unknown
	InWork        int
	DeliveryLimit time.Duration
	// Why the target receives no messages.
	NotReady       []Problem
	DeletesRefused Problem
	// Known means that the fields below are valid. Taken is when they were read; zero means now.
	Known bool
	Taken time.Time
	// Retention is the maximum age of a message.
	Backlog           int64
	Oldest, Retention time.Duration
	// DeadLettered counts the messages moved there so far. Both are valid only if HasDeadLetters is true.
	DeadLetters, DeadLettered int64
	HasDeadLetters            bool
	DeadLetterQueue           string
}

// Problem is a problem and the time at which it started. The zero value means no problem.
type Problem struct {
	Since  time.Time
	Reason string
}

// AppState is the state of an app that tendril runs.
type AppState struct {
	// The failed readiness check; "" if unknown.
	NotReady   string
	LastReady  time.Time
	Processes  []Process
	Operation  Operation
	Deployment Deployment
}

// TaskState describes a periodic task that is paused or failing.
type TaskState struct {
	Name string
	// Scheduled runs are skipped. PausedBy and PauseReason may be "".
	Paused                bool
	PausedBy, PauseReason string
	PausedAt              time.Time
	// Problem is why the task cannot be enqueued, or "".
	Problem string
	// FailedRuns counts failures in a row.
	FailedRuns  int
	LastFailure string
}

// DataDirState is the state of the data directory.
type DataDirState struct {
	// Lost says how the directory differs from the one opened, or is "".
	Lost     string
	Embedded bool
}

// LeaderState is what this instance knows about the leader of the periodic tasks.
type LeaderState struct {
	Tasks int // periodic ones
	// Known means that an instance is the leader or none is needed. Off means that there can be no leader until a
	// restart.
	Known, Off bool
	Error      string
}
