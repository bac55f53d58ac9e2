package health

import "time"

// inputs are what the rules look at. A zero field raises no cause.
type inputs struct {
	// Now is when this was read, Started when the environment was started.
	Now, Started time.Time
	// StartLimit is how long it may take to be ready first; 0 means 10 min.
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
	// Scaling is why a group of instances keeps a size that this instance would change; "" if it does not.
	Scaling string
	DataDir DataDirState

	// Deliveries are those of the last five minutes, P95 is what one in twenty of those that were
	// answered exceeded, and DeliveryLimit the longest that one may take; 0 when not known.
	Deliveries         counts
	P95, DeliveryLimit time.Duration
	// NoLeader is since when no leader is known; zero when one is.
	NoLeader time.Time
	// IgnoreClientErrors leaves answers of 4xx out of the judgement.
	IgnoreClientErrors bool
	// Draining and Paused are what a person or a stop asked for; InWork is how
	// many deliveries run.
	Draining, Paused bool
	InWork           int
}

// appInputs are the state of the app, wherever it runs.
type appInputs struct {
	// Ready is whether it may be given work; Reason is why not, and Since from when.
	Ready     bool
	Reason    string
	Since     time.Time
	WasReady  bool      // since the start
	Processes []Process // those that tendril runs
}

// Process is one process of the app.
type Process struct {
	Name string
	// GivenUp tells that it failed too often and is down. RetryAfter is the time between two
	// more attempts to start it; 0 when there are none.
	GivenUp    bool
	RetryAfter time.Duration
	// Restarts is how often it was started again after a failure: in an [AppState] since the
	// start, in the inputs within the last five minutes.
	Restarts int
	LastExit string // how the last run ended, as in "exit status 1"; "" where not known
}

// Operation is something under way that changes the environment.
type Operation struct {
	Name  string // as in "application deployment"; "" for none
	Since time.Time
	Limit time.Duration // how long it may take; 0 means 10 min
}

// Deployment is the last one that ended.
type Deployment struct {
	Version string // "" for none
	Ended   time.Time
	Took    time.Duration
	Failed  string // why it was rolled back; "" when it was not
}

// queueInputs are what waits, of all queues together.
type queueInputs struct {
	// Known tells that the figures are; Taken is when they were read.
	Known bool
	Taken time.Time
	// Backlog is how many messages wait, DeadLetters how many are in the dead-letter
	// queue. NewDeadLetters are those of the last five minutes, and Expired is how many messages
	// were deleted in that time because their retention was over.
	Backlog, DeadLetters, NewDeadLetters, Expired int64
	// Oldest is how long the oldest message waits, Retention how long one may;
	// 0 where not known.
	Oldest, Retention time.Duration
	// Failed is why the store of an embedded queue accepts nothing; "" when it does.
	// DeletesRefused is why messages cannot be deleted; "" when they can.
	Failed, DeletesRefused string
}

// pollFailure is why a queue cannot be received from. It is final when the queue will not answer: it does not
// exist, or access is denied.
type pollFailure struct {
	problem Problem
	Final   bool
}

// QueueState is what is known of one queue and of the worker that receives from it.
type QueueState struct {
	Name string
	// Embedded tells that the store of the queue is this instance's own.
	Embedded bool
	// Receiving tells that messages are received, Paused that a person has paused that.
	Receiving, Paused bool
	// InWork is how many deliveries run; DeliveryLimit the longest that one may take, 0 when
	// not known.
	InWork        int
	DeliveryLimit time.Duration
	// NotReady are the reasons for which the target gets no messages, and DeletesRefused is
	// the reason for which messages cannot be deleted.
	NotReady       []Problem
	DeletesRefused Problem
	// Known tells that the figures below are; Taken is when they were read, zero for now.
	Known bool
	Taken time.Time
	// Backlog is how many messages wait, Oldest how long the oldest waits, Retention how
	// long one may.
	Backlog           int64
	Oldest, Retention time.Duration
	// DeadLetters is how many are in the dead-letter queue, DeadLettered a counter that rises
	// with each; both are known only if HasDeadLetters is true.
	DeadLetters, DeadLettered int64
	HasDeadLetters            bool
}

// Problem is something wrong since a time. The zero value means that nothing is wrong.
type Problem struct {
	Since  time.Time
	Reason string
}

// AppState is the state of the app that tendril runs.
type AppState struct {
	// NotReady is which check the app fails; "" where not known. LastReady is when it was last
	// seen ready.
	NotReady  string
	LastReady time.Time
	Processes []Process
	// Operation is a deployment under way, Deployment the last one that ended.
	Operation  Operation
	Deployment Deployment
}

// TaskState is a periodic task that is paused or does not succeed.
type TaskState struct {
	Name string
	// Paused tells that its runs are left out, and Reason why a person wanted that.
	Paused bool
	Reason string
	// Problem is why it cannot be enqueued; "" when it can.
	Problem string
	// FailedRuns is how many of its last runs failed in a row, LastFailure why the newest did.
	FailedRuns  int
	LastFailure string
}

// DataDirState is what is known about the data directory.
type DataDirState struct {
	// Lost says how it differs from the directory that was opened; "" while it is the same.
	Lost string
	// Embedded tells that it holds queues.
	Embedded bool
}

// LeaderState is what this instance knows about the leader of the periodic tasks.
type LeaderState struct {
	Tasks int // how many there are
	// Known tells that some instance is the leader, or that none is needed; Off that none
	// can be, since the start.
	Known, Off bool
	Error      string
}
