package health

import "time"

// inputs are the values that the rules evaluate. A zero field produces no cause.
type inputs struct {
	Now, Started time.Time
	// StartLimit is how long the app may take to become ready; 0 means 10 min.
	StartLimit time.Duration

	App        appInputs
	Operation  Operation
	Deployment Deployment
	Queues     []queueInputs
	// Store is the reason why the embedded queues accept no messages, or "".
	Store    string
	Leader   LeaderState
	Problems []StoredProblem
	Tasks    []TaskState
	Host     Reading
	// Scaling is the reason why the group keeps its size although this instance wants another, or "".
	Scaling string
	DataDir DataDirState
	// RegistryLost is why receiving is stopped until the shared registry answers, or "".
	RegistryLost string

	// NoLeader is the time since which there has been no leader, or zero.
	NoLeader time.Time
	// IgnoreClientErrors excludes 4xx responses from health.
	IgnoreClientErrors bool
	Draining           bool // the environment is shutting down
}

type appInputs struct {
	// Ready reports whether the app accepts messages. Reason and Since explain why it does not.
	Ready     bool
	Reason    string
	Since     time.Time
	WasReady  bool      // at any time since startup
	Queues    []string  // queues from which the app receives nothing while it is not ready
	Processes []Process // app processes that tendril runs
}

// Process is one process of the app.
type Process struct {
	Name string
	// GivenUp means that the process is down because it failed too often. RetryAfter is the interval between attempts
	// to start it, or 0.
	GivenUp    bool
	RetryAfter time.Duration
	// Restarts counts restarts after a failure. It covers the time since startup in an [AppState], and the last five
	// minutes in inputs.
	Restarts int
	LastExit string // how the last run ended, such as "exit status 1"; "" if unknown
}

// Operation is a change of the environment that is in progress.
type Operation struct {
	Name  string // such as "application deployment"; "" if nothing is in progress
	Since time.Time
	Limit time.Duration // maximum duration; 0 means 10 min
}

// Deployment is the last deployment that ended.
type Deployment struct {
	Version string // "" if there was no deployment
	Ended   time.Time
	Failed  string // why it was rolled back; "" if it succeeded
}

// queueInputs are the values of one queue.
type queueInputs struct {
	QueueState
	// Deliveries covers the last five minutes. P95 is the 95th percentile of the duration of answered deliveries.
	Deliveries counts
	P95        time.Duration
	LastFailed Failure
	// NewDeadLetters and Expired cover the last five minutes. Expired counts messages deleted at the end of their
	// retention period.
	NewDeadLetters, Expired int64
	Poll                    pollFailure
}

// Failure is a failed delivery.
type Failure struct{ MessageID, Reason string }

// StoredProblem describes damaged or unprocessed stored messages of a queue.
type StoredProblem struct{ Queue, Text, Remedy string }

// pollFailure is the reason why receiving fails. If final is true, retrying is pointless.
type pollFailure struct {
	problem Problem
	Final   bool
}

// QueueState is the state of one queue and its worker.
type QueueState struct {
	Name string
	// Embedded means that the queue is stored by this instance.
	Embedded  bool
	Receiving bool
	// Paused means that a user paused receiving. PausedBy and PauseReason may be "".
	Paused                bool
	PausedBy, PauseReason string
	PausedAt              time.Time
	// Why is the reason why messages wait, or "".
	Why string
	// DeliveryLimit is the maximum duration of a delivery, or 0 if unknown.
	InWork        int
	DeliveryLimit time.Duration
	// NotReady lists the reasons why the target receives no messages.
	NotReady       []Problem
	DeletesRefused Problem
	// Known means that the fields below are valid. Taken is when they were read; zero means now.
	Known bool
	Taken time.Time
	// Oldest is the age of the oldest message, and Retention the maximum age of a message.
	Backlog           int64
	Oldest, Retention time.Duration
	// DeadLetters is the number of messages in the dead-letter queue, and DeadLettered counts the messages moved
	// there so far. Both are valid only if HasDeadLetters is true.
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
	// NotReady describes the failed readiness check. It is "" if unknown.
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
	// Problem is the reason why the task cannot be enqueued, or "".
	Problem string
	// FailedRuns is the number of consecutive failed runs.
	FailedRuns  int
	LastFailure string
}

// DataDirState is the state of the data directory.
type DataDirState struct {
	// Lost says how the directory differs from the one that was opened. It is "" if they are the same.
	Lost     string
	Embedded bool
}

// LeaderState is what this instance knows about the leader of the periodic tasks.
type LeaderState struct {
	Tasks int // number of periodic tasks
	// Known means that an instance is the leader or none is needed. Off means that there can be no leader until a
	// restart.
	Known, Off bool
	Error      string
}
