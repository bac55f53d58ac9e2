package health

import "time"

// Inputs are what the rules look at. A zero field raises no cause.
type Inputs struct {
	// Now is when this was read, Started when the environment was started.
	Now, Started time.Time
	// StartLimit is how long it may take to be ready first; 0 means 10 min.
	StartLimit time.Duration

	App        App
	Operation  Operation
	Deployment Deployment
	Requests   Requests
	Queue      Queue
	Poll       Poll
	Leader     Leader
	Host       Reading

	// IgnoreClientErrors leaves answers of 4xx out of the judgement.
	IgnoreClientErrors bool
	// Draining and Paused are what a person or a stop asked for; InWork is how
	// many deliveries run.
	Draining, Paused bool
	InWork           int
}

// App is the state of the app, wherever it runs.
type App struct {
	// Ready is whether it may be given work; Reason is why not, and Since from when.
	Ready  bool
	Reason string
	Since  time.Time
	// WasReady tells that it has been ready since the start.
	WasReady bool
	// Processes are those that tendril runs.
	Processes []Process
}

// Process is one process of the app.
type Process struct {
	Name string
	// GivenUp tells that it failed too often and is down. RetryAfter is the time between two
	// more attempts to start it; 0 when there are none.
	GivenUp    bool
	RetryAfter time.Duration
	// Restarts is how often it was started again after a failure: in an [AppState] since the
	// start, in [Inputs] within the last five minutes.
	Restarts int
	// LastExit is how the last run ended, as in "exit status 1"; "" where not known.
	LastExit string
}

// Operation is something under way that changes the environment.
type Operation struct {
	// Name is what, as in "application deployment"; "" for none.
	Name  string
	Since time.Time
	// Limit is how long it may take; 0 means 10 min.
	Limit time.Duration
}

// Deployment is the last one that ended.
type Deployment struct {
	// Version names it; "" for none.
	Version string
	Ended   time.Time
	Took    time.Duration
	// Failed is why it was rolled back; "" when it was not.
	Failed string
}

// Queue is what waits, of all queues together.
type Queue struct {
	// Known tells that the figures are; Taken is when they were read.
	Known bool
	Taken time.Time
	// Backlog is how many messages wait, DeadLetters how many are in the dead-letter
	// queue, NewDeadLetters how many of them came within the last five minutes.
	Backlog, DeadLetters, NewDeadLetters int64
	// Expired is how many messages were deleted within the last five minutes
	// because their retention was over.
	Expired int64
	// Oldest is how long the oldest message waits, Retention how long one may;
	// 0 where not known.
	Oldest, Retention time.Duration
	// Failed is why the store of an embedded queue accepts nothing; "" when it
	// does.
	Failed string
}

// Poll is how receiving goes.
type Poll struct {
	// FailingSince is when receives began to fail without one that worked
	// since; zero when they work. Error is the last failure.
	FailingSince time.Time
	Error        string
	// Refused tells that the queue will not answer: it does not exist, or access is denied.
	Refused bool
	// DeletesRefused is why messages cannot be deleted; "" when they can.
	DeletesRefused string
}

// Leader is what is known about the leader of the periodic tasks.
type Leader struct {
	// Tasks is how many there are; without any, no leader is needed.
	Tasks int
	// Unknown is since when no leader is known; zero when one is.
	Unknown time.Time
	Error   string
}
