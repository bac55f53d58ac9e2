package health

import "time"

// inputs are the values the rules judge. A zero field raises no cause.
type inputs struct {
	// Now is when the inputs were read, and Started when the environment was started.
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
	// Scaling is why a group of instances keeps its size against this instance's wish, or "".
	Scaling string
	DataDir DataDirState

	// Deliveries are the counts of the last five minutes. P95 is the 95th percentile of answered deliveries, and
	// DeliveryLimit the longest allowed duration; 0 if unknown.
	Deliveries         counts
	P95, DeliveryLimit time.Duration
	// NoLeader is when the last known leader disappeared, or zero.
	NoLeader time.Time
	// IgnoreClientErrors excludes 4xx responses.
	IgnoreClientErrors bool
	// Draining and Paused were requested by a user or a shutdown. InWork is the number of deliveries in flight.
	Draining, Paused bool
	InWork           int
}

// appInputs are the state of the app, wherever it runs.
type appInputs struct {
	// Ready reports whether it accepts messages. If not, Reason explains why and Since when that started.
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
	// 0 if there are none.
	GivenUp    bool
	RetryAfter time.Duration
	// Restarts counts restarts after a failure: since startup in an [AppState], within the last five minutes in the
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
	// Known reports whether the other fields are known. Taken is when they were read.
	Known bool
	Taken time.Time
	// Backlog is the number of waiting messages, and DeadLetters the number in dead-letter queues. NewDeadLetters and
	// Expired count messages dead-lettered and deleted after their retention period within the last five minutes.
	Backlog, DeadLetters, NewDeadLetters, Expired int64
	// Oldest is the age of the oldest message, and Retention its maximum; 0 if unknown.
	Oldest, Retention time.Duration
	// Failed is why the store of an embedded queue accepts nothing, or "". DeletesRefused is why messages cannot be
	// deleted, or "".
	Failed, DeletesRefused string
}

// pollFailure is why receiving from a queue fails. Final means that retrying is pointless: the queue does not exist,
// or access is denied.
type pollFailure struct {
	problem Problem
	Final   bool
}

// QueueState is the state of one queue and its worker.
type QueueState struct {
	Name string
	// Embedded reports whether the queue is stored by this instance.
	Embedded bool
	// Receiving reports whether messages are received, and Paused whether a user paused receiving.
	Receiving, Paused bool
	// InWork is the number of deliveries in flight. DeliveryLimit is the longest allowed duration of one, or 0 if
	// unknown.
	InWork        int
	DeliveryLimit time.Duration
	// NotReady are the reasons why the target gets no messages. DeletesRefused is the reason why messages cannot be
	// deleted.
	NotReady       []Problem
	DeletesRefused Problem
	// Known reports whether the fields below are known. Taken is when they were read; zero means now.
	Known bool
	Taken time.Time
	// Backlog is the number of waiting messages, Oldest the age of the oldest, and Retention the maximum age.
	Backlog           int64
	Oldest, Retention time.Duration
	// DeadLetters is the number of messages in the dead-letter queue, and DeadLettered a counter of dead-lettered
	// messages. Both are known only if HasDeadLetters is true.
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
	// NotReady describes the failing check, or is "" if unknown. LastReady is when the app was last ready.
	NotReady  string
	LastReady time.Time
	Processes []Process
	// Operation is a deployment in progress, and Deployment the last finished one.
	Operation  Operation
	Deployment Deployment
}

// TaskState is a periodic task that is paused or failing.
type TaskState struct {
	Name string
	// Paused means that its scheduled runs are skipped. Reason is the user's reason.
	Paused bool
	Reason string
	// Problem is why it cannot be enqueued, or "".
	Problem string
	// FailedRuns counts its consecutive failed runs, and LastFailure describes the newest failure.
	FailedRuns  int
	LastFailure string
}

// DataDirState is the state of the data directory.
type DataDirState struct {
	// Lost describes how it differs from the directory that was opened, or is "".
	Lost string
	// Embedded reports whether it contains queues.
	Embedded bool
}

// LeaderState is this instance's knowledge of the leader of the periodic tasks.
type LeaderState struct {
	Tasks int // number of periodic tasks
	// Known means that some instance leads or that no leader is needed. Off means that there cannot be a leader until
	// a restart.
	Known, Off bool
	Error      string
}
