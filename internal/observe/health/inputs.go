package health

import "time"

// inputs are the values the rules judge. A zero field raises no cause.
type inputs struct {
	Now, Started time.Time
	// StartLimit is how long the app may take to become ready; 0 means 10 min.
	StartLimit time.Duration

	App        appInputs
	Operation  Operation
	Deployment Deployment
	Queue      queueInputs
	Poll       pollFailure
	Leader     LeaderState
	Problems   []string // with stored messages
	Tasks      []TaskState
	Host       Reading
	// Scaling is why the group keeps its size against this instance's wish, or "".
	Scaling string
	DataDir DataDirState

	// Deliveries covers the last five minutes. P95 is the 95th percentile of answered deliveries, and DeliveryLimit
	// the longest allowed duration; 0 if unknown.
	Deliveries         counts
	P95, DeliveryLimit time.Duration
	// NoLeader is when the last known leader disappeared, or zero.
	NoLeader time.Time
	// IgnoreClientErrors excludes 4xx responses.
	IgnoreClientErrors bool
	// Draining and Paused were requested by a user or a shutdown.
	Draining, Paused bool
	InWork           int
}

type appInputs struct {
	// Ready reports whether it accepts messages. If not, Reason and Since explain it.
	Ready     bool
	Reason    string
	Since     time.Time
	WasReady  bool      // since startup
	Processes []Process // processes run by tendril
}

// Process is one process of the app.
type Process struct {
	Name string
	// GivenUp means that it failed too often and is down. RetryAfter is the interval between attempts to start it, or
	// 0.
	GivenUp    bool
	RetryAfter time.Duration
	// Restarts counts restarts after a failure: since startup in an [AppState], in the last five minutes in the
	// inputs.
	Restarts int
	LastExit string // result of the last run, such as "exit status 1"; "" if unknown
}

// Operation is a change of the environment in progress.
type Operation struct {
	Name  string // such as "application deployment"; "" for none
	Since time.Time
	Limit time.Duration // maximum duration; 0 means 10 min
}

// Deployment is the last finished deployment.
type Deployment struct {
	Version string // "" for none
	Ended   time.Time
	Took    time.Duration
	Failed  string // why it was rolled back; "" if it succeeded
}

// queueInputs are the sums over all queues.
type queueInputs struct {
	// Taken is when the other fields were read, if Known.
	Known bool
	Taken time.Time
	// NewDeadLetters and Expired cover the last five minutes. Expired messages were deleted after their retention
	// period.
	Backlog, DeadLetters, NewDeadLetters, Expired int64
	// Oldest is the age of the oldest message, and Retention its maximum; 0 if unknown.
	Oldest, Retention time.Duration
	// Failed is why an embedded queue accepts nothing, and DeletesRefused why messages cannot be deleted.
	Failed, DeletesRefused string
}

// pollFailure is why receiving fails. Final means that retrying is pointless.
type pollFailure struct {
	problem Problem
	Final   bool
}

// QueueState is the state of one queue and its worker.
type QueueState struct {
	Name string
	// Embedded means that this instance stores the queue.
	Embedded bool
	// Paused means that a user paused receiving.
	Receiving, Paused bool
	// DeliveryLimit is the longest allowed duration of a delivery, or 0 if unknown.
	InWork        int
	DeliveryLimit time.Duration
	// NotReady are the reasons why the target gets no messages.
	NotReady       []Problem
	DeletesRefused Problem
	// Known means that the fields below are known. Taken is when they were read; zero means now.
	Known bool
	Taken time.Time
	// Oldest is the age of the oldest message, and Retention the maximum age.
	Backlog           int64
	Oldest, Retention time.Duration
	// DeadLetters is the current number of dead letters and DeadLettered a counter, both known only if HasDeadLetters
	// is true.
	DeadLetters, DeadLettered int64
	HasDeadLetters            bool
}

// Problem is a problem and the time it started. The zero value means no problem.
type Problem struct {
	Since  time.Time
	Reason string
}

// AppState is the state of the app run by tendril.
type AppState struct {
	// NotReady describes the failing check, or is "" if unknown.
	NotReady   string
	LastReady  time.Time
	Processes  []Process
	Operation  Operation
	Deployment Deployment
}

// TaskState is a periodic task that is paused or failing.
type TaskState struct {
	Name string
	// Paused means that scheduled runs are skipped, for the user's reason.
	Paused bool
	Reason string
	// Problem is why it cannot be enqueued, or "".
	Problem string
	// FailedRuns counts consecutive failed runs.
	FailedRuns  int
	LastFailure string
}

// DataDirState is the state of the data directory.
type DataDirState struct {
	// Lost describes how it differs from the directory that was opened, or is "".
	Lost     string
	Embedded bool
}

// LeaderState is this instance's knowledge of the leader of the periodic tasks.
type LeaderState struct {
	Tasks int // number of periodic tasks
	// Known means that some instance leads or that no leader is needed. Off means that there cannot be one until a
	// restart.
	Known, Off bool
	Error      string
}
