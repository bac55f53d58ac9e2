package health

import "time"

// inputs are the rules' inputs. A zero field other than App produces no cause.
type inputs struct {
	Now, Started time.Time
	StartLimit   time.Duration // until the app is ready; 0 means 10 min

	App        appInputs
	Operation  Operation
	Deployment Deployment
	Queues     []queueInputs
	Store      string
	Leader     LeaderState
	Problems   []StoredProblem
	Tasks      []TaskState
	Host       Reading
	// Scaling is the reason that the leader delays a scale-in, or "".
	Scaling      string
	DataDir      DataDirState
	RegistryLost string

	// NoLeader is when the leader was lost, or zero.
	NoLeader           time.Time
	IgnoreClientErrors bool
	Draining           bool
}

type appInputs struct {
	Ready     bool
	Reason    string
	Since     time.Time
	WasReady  bool
	Queues    []string
	Processes []Process
}

// Process is an app process.
type Process struct {
	Name string
	// A GivenUp process is retried every RetryAfter; 0 means never.
	GivenUp    bool
	RetryAfter time.Duration
	// Restarts counts restarts after failures; in inputs, those in the last five minutes.
	Restarts int
	LastExit string
}

// Operation is a change in progress.
type Operation struct {
	Name  string // such as "application deployment", or ""
	Since time.Time
	Limit time.Duration // 0 means 10 min
}

// Deployment is the last completed deployment.
type Deployment struct {
	Version string
	Ended   time.Time
	Failed  string
}

type queueInputs struct {
	QueueState
	// Deliveries and P95, a latency, cover the last five minutes.
	Deliveries counts
	P95        time.Duration
	LastFailed lastFailures
	// NewDeadLetters and Expired cover the last five minutes.
	NewDeadLetters, Expired int64
	OldDeadLetters          bool // the queue has had dead letters since startup
	Poll                    pollFailure
}

// Failure is a failed delivery.
type Failure struct {
	MessageID, Reason string
	number            int64 // increases per queue; 0 means no failure
}

// StoredProblem is a problem with a queue's stored messages.
type StoredProblem struct{ Queue, Text, Remedy string }

type pollFailure struct {
	problem Problem
	Final   bool
}

// QueueState is the state of one queue and its worker.
type QueueState struct {
	Name                  string
	Embedded              bool
	Receiving             bool
	Paused                bool
	PausedBy, PauseReason string
	PausedAt              time.Time
	Why                   string
	InWork                int
	DeliveryLimit         time.Duration
	NotReady              []Problem
	DeletesRefused        Problem
	// The fields below are valid if Known. Taken is when they were read; zero means now.
	Known             bool
	Taken             time.Time
	Backlog           int64
	Oldest, Retention time.Duration
	// DeadLettered is cumulative. DeadLetters and DeadLettered are valid if HasDeadLetters.
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
	NotReady   string
	LastReady  time.Time
	Processes  []Process
	Operation  Operation
	Deployment Deployment
}

// TaskState describes a paused or failing periodic task.
type TaskState struct {
	Name string
	// A Paused task skips scheduled runs.
	Paused                bool
	PausedBy, PauseReason string
	PausedAt              time.Time
	Problem               string
	FailedRuns            int
	LastFailure           string
}

// DataDirState is the state of the data directory.
type DataDirState struct {
	// Lost is how the directory differs from the opened one, or "".
	Lost     string
	Embedded bool
}

// LeaderState is the state of the leader election, as seen by this instance.
type LeaderState struct {
	Tasks int
	// Known means that there is a leader, or none is needed. Off means that there can be none before a restart.
	Known, Off bool
	Error      string
}
