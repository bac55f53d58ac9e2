package api

import (
	"fmt"
	"strings"
	"time"

	"tendril/internal/observe/health"
	"tendril/queue"
)

// States of an environment.
const (
	StateStarting = "starting"
	StateRunning  = "running"
	StateDraining = "draining"
)

// Backends of an environment.
const (
	BackendEmbedded = "embedded"
	BackendSQS      = "sqs"
)

// Status is a snapshot of the environment.
type Status struct {
	Environment string `json:"environment"`
	Version     string `json:"version"`
	PID         int    `json:"pid"`
	// State is "" if unknown.
	State   string `json:"state,omitempty"`
	Backend string `json:"backend"`
	// QueueServer is the SQS-compatible server's host, if the queues are neither on Amazon SQS nor embedded.
	QueueServer string         `json:"queue_server,omitempty"`
	StartedAt   time.Time      `json:"started_at,omitzero"`
	Ready       bool           `json:"ready"`
	Checks      []health.Check `json:"checks,omitempty"`
	// Queues are the embedded queues by name, then those in use on Amazon SQS.
	Queues []Queue  `json:"queues"`
	Ledger *Account `json:"ledger,omitempty"`
	// Workers is empty if the environment only serves queues.
	Workers []Worker `json:"workers,omitempty"`
	// App is empty if the app is managed elsewhere.
	App            []Process       `json:"app,omitempty"`
	Deployment     *Deployment     `json:"deployment,omitempty"`
	PoisonMessages *PoisonMessages `json:"isolation,omitempty"`
	Limits         []Limit         `json:"limits,omitempty"`
	Scaling        *Scaling        `json:"scaling,omitempty"`
	Health         *health.Report  `json:"health,omitempty"`
	Tasks          *TasksStatus    `json:"tasks,omitempty"` // nil without periodic tasks
	// Problems groups the latest failed deliveries by queue and reason, most recent first.
	Problems []Problem `json:"problems,omitempty"`
}

// Account counts every message ever accepted:
//
//	Sent = Done + DeadLettered + Expired + Purged + Live
type Account struct {
	Sent         int64 `json:"sent"`
	Done         int64 `json:"done"`
	DeadLettered int64 `json:"dead_lettered"` // now in a dead-letter queue
	// Expired counts messages past their retention period.
	Expired int64 `json:"expired"`
	// Purged counts messages removed by an operator.
	Purged int64 `json:"purged"`
	// Live counts visible, delayed and in-flight messages, without dead letters.
	Live int64 `json:"live"`
}

// Off returns the account's imbalance: 0 unless there is a bug.
func (a Account) Off() int64 {
	return a.Sent - a.Done - a.DeadLettered - a.Expired - a.Purged - a.Live
}

// Ledger accounts for a queue's messages.
type Ledger = queue.Ledger

// Queue is a queue with its message counts and settings.
type Queue struct {
	Name          string  `json:"name"`
	ARN           string  `json:"arn,omitempty"`
	URL           string  `json:"url,omitempty"` // on Amazon SQS only
	FIFO          bool    `json:"fifo"`
	Ledger        Ledger  `json:"ledger"`         // on Amazon SQS, only the counts of live messages
	OldestSeconds float64 `json:"oldest_seconds"` // age of the oldest live message; 0 if empty or unknown
	// Newest is the newest message's position in an embedded queue, from 1; see [Confirmation].Through.
	Newest          int64  `json:"newest,omitempty"`
	DeadLetterQueue string `json:"dead_letter_queue,omitempty"` // from the redrive policy, like MaxReceives
	MaxReceives     int    `json:"max_receives,omitempty"`
	// DeadLetterQueueMissing means that the dead-letter queue does not exist, so messages are retried without limit.
	DeadLetterQueueMissing bool `json:"dead_letter_queue_missing,omitempty"`
	// DeadLetterSources are queues whose redrive policy targets this one. Lists of queues omit them.
	DeadLetterSources []string `json:"dead_letter_sources,omitempty"`
	// Progress describes this environment's worker.
	Progress
	Attributes map[string]string `json:"attributes,omitempty"` // lists of queues omit them
}

// DeadLetterQueues returns the names of the queues' dead-letter queues.
func DeadLetterQueues(queues []Queue) map[string]bool {
	names := map[string]bool{}
	for _, q := range queues {
		if q.DeadLetterQueue != "" {
			names[q.DeadLetterQueue] = true
		}
	}
	return names
}

// Problem describes problems of the queue itself, such as damaged messages, or returns "".
func (q *Queue) Problem() string {
	var problems []string
	if q.DeadLetterQueueMissing {
		problems = append(problems, "its dead-letter queue "+q.DeadLetterQueue+" does not exist")
	}
	if q.Ledger.Damaged > 0 {
		problems = append(problems, fmt.Sprintf("%d of its messages are damaged and cannot be delivered", q.Ledger.Damaged))
	}
	return strings.Join(problems, "; ")
}

// Worker describes the receiving and delivery of one queue's messages.
type Worker struct {
	Queue  string `json:"queue"`
	FIFO   bool   `json:"fifo,omitempty"`
	Target string `json:"target,omitempty"`
	Progress
	// Concurrency is the queue's maximum number of messages in flight. Limit is a lower maximum while the worker
	// resumes after an outage, otherwise 0. Slots is the maximum of all queues together; 0 for a single queue.
	Concurrency int `json:"concurrency"`
	Limit       int `json:"limit,omitempty"`
	Slots       int `json:"slots,omitempty"`
	InWork      int `json:"in_work"`
	// Waiting counts messages waiting for delivery, without delayed ones. Prefetched counts those that the worker has
	// already received.
	Waiting    int64 `json:"waiting"`
	Prefetched int   `json:"prefetched"`
	// InFlight counts messages hidden from receives, including failed ones whose retry is not due.
	InFlight     int64  `json:"in_flight"`
	LongestGroup string `json:"longest_group,omitempty"`
	// Receiving is false while a gate is closed, the worker paused or the breaker open.
	Receiving   bool     `json:"receiving"`
	GateReasons []string `json:"gate_reasons,omitempty"`
	WorkerCounts
	RecentDeliveries int64   `json:"recent_deliveries"` // in the last five minutes
	RecentFailed     int64   `json:"recent_failed"`
	OldestSeconds    float64 `json:"oldest_seconds"`
	// LongestWaitSeconds is the longest time from send to delivery in the last minute.
	LongestWaitSeconds float64 `json:"longest_wait_seconds"`
	// TurnShare is the queue's share, 0 to 1, of the deliveries started in the last minute.
	TurnShare float64 `json:"turn_share"`
	LimitedBy string  `json:"limited_by,omitempty"` // limit that delays messages
	PerSecond float64 `json:"per_second,omitempty"` // recent rate of settled messages
	LastError string  `json:"last_error,omitempty"` // from the latest queue call; "" if it succeeded
}

// WorkerCounts counts messages since startup, and deliveries by outcome.
type WorkerCounts struct {
	Received  int64 `json:"received"`
	Done      int64 `json:"done"`
	Failed    int64 `json:"failed"`
	Unreached int64 `json:"unreached"`
	// Returned messages became visible again without a delivery.
	Returned int64 `json:"given_back"`
	// Expired messages exceeded their retention period or deadline, Filtered ones did not match the filter. Both were
	// deleted without a delivery.
	Expired  int64 `json:"expired"`
	Filtered int64 `json:"filtered"`
	// Throttled messages were rejected by the target's rate limit.
	Throttled int64 `json:"throttled"`
}

// Roles of a [Process].
const (
	RoleRetired    = "retired"    // gets no new messages, finishes its deliveries and stops
	RoleQuarantine = "quarantine" // gets only quarantined messages
)

// Process is a process of the app.
type Process struct {
	// Name is from the Procfile, or "web" for a single command.
	Name  string `json:"name"`
	State string `json:"state"`
	Role  string `json:"role,omitempty"` // "" for helpers and for replicas that get new messages
	PID   int    `json:"pid,omitempty"`  // 0 if not running
	Port  int    `json:"port,omitempty"`
	// Ready means that the process accepts messages. Without a port, it is ready as soon as it runs.
	Ready    bool      `json:"ready"`
	Since    time.Time `json:"since,omitzero"`
	Restarts int       `json:"restarts"` // automatic restarts
	LastExit string    `json:"last_exit,omitempty"`
	NotReady string    `json:"not_ready,omitempty"`
	// Memory is the resident memory in bytes, and CPUPercent the recent use of one processor, both including child
	// processes; 0 if unknown.
	Memory     int64   `json:"memory,omitempty"`
	CPUPercent float64 `json:"cpu_percent,omitempty"`
}

// ShownDecisions limits the decisions in a [Scaling].
const ShownDecisions = 20

// Scaling describes the scaling of the environment.
type Scaling struct {
	// Target is "processes" for local processes, "asg:" and an Auto Scaling group's name, "ecs:", cluster, "/" and
	// service for Amazon ECS, "publish" for an external scaler that uses the published metrics, or "none" if
	// configured scaling is impossible; see Problem.
	Target  string `json:"target"`
	MinSize int    `json:"min_size"`
	MaxSize int    `json:"max_size"`
	// Desired is 0 before the first decision. Ready counts processes or instances that can work.
	Desired  int  `json:"desired"`
	Ready    int  `json:"ready"`
	IsLeader bool `json:"in_charge"` // this instance scales or publishes; always true for processes
	// Protection is scale-in protection, "on" or "off", or "" if not applicable.
	Protection string          `json:"protection,omitempty"`
	Problem    string          `json:"problem,omitempty"`
	Decisions  []ScaleDecision `json:"decisions,omitempty"` // the latest [ShownDecisions], newest first
}

// ScaleDecision is a decision about the size, or a series of identical ones.
type ScaleDecision struct {
	At         time.Time    `json:"at"`
	Until      time.Time    `json:"until"`
	Times      int          `json:"times"`
	From       int          `json:"from"`
	Desired    int          `json:"desired"`
	Rule       string       `json:"rule"`
	Why        string       `json:"why"`
	Applied    bool         `json:"applied"`
	NotApplied string       `json:"not_applied,omitempty"` // the reason the size could not be set, or ""
	Inputs     *ScaleInputs `json:"inputs,omitempty"`
}

// States of a [Deployment], in order.
const (
	DeployPreparing  = "preparing" // hooks and build commands run
	DeployStarting   = "starting"  // the new version starts beside the previous one
	DeployFinishing  = "finishing" // the new version serves; the last hooks run
	DeployDone       = "done"
	DeployRolledBack = "rolled back" // the previous version is still serving
	DeployFailed     = "failed"      // the new version serves, but a later step failed
)

// Deployment is a running or finished change of the app's version.
type Deployment struct {
	State   string    `json:"state"`
	Step    string    `json:"step,omitempty"` // current or failed hook or build command
	From    string    `json:"from,omitempty"`
	To      string    `json:"to"`
	Since   time.Time `json:"since"`
	Ended   time.Time `json:"ended,omitzero"` // zero while in progress
	Error   string    `json:"error,omitempty"`
	Aborted bool      `json:"aborted,omitempty"`
}

// Over reports whether the deployment has ended.
func (d *Deployment) Over() bool {
	return d.State == DeployDone || d.State == DeployRolledBack || d.State == DeployFailed
}

// PoisonMessages counts messages that crash the app.
type PoisonMessages struct {
	Quarantined int  `json:"suspects"` // suspected of crashing the app, so they are delivered one at a time
	Poison      int  `json:"killers"`
	Broken      bool `json:"broken,omitempty"`
}

// Limit describes the limits protecting a target.
type Limit struct {
	Target      string   `json:"target"`                // of the first of Queues
	Queues      []string `json:"queues,omitempty"`      // queues that share the limit
	Rate        float64  `json:"rate,omitempty"`        // messages per second; 0 for no limit
	InWork      int      `json:"in_work"`               // deliveries in progress; a batch counts as one
	Concurrency int      `json:"concurrency,omitempty"` // the current adaptive or slow-start limit; 0 means no limit
	// Breaker is "closed", "open", "half-open", or "" without one.
	Breaker string    `json:"breaker,omitempty"`
	TrialAt time.Time `json:"trial_at,omitzero"` // time of the next trial delivery of an open breaker
	Failing float64   `json:"failing,omitempty"` // recent share of failed deliveries, 0 to 1
	Refused int64     `json:"refused"`
}

// States of an [AppVersion].
const (
	VersionLive      = "live"
	VersionKept      = "kept" // served earlier; available for rollback
	VersionDeploying = "deploying"
	VersionFailed    = "failed" // its files were removed
	// VersionInPlace served earlier from a folder that tendril did not copy, so rollback is impossible.
	VersionInPlace = "in place"
)

// AppVersion is a deployed version of the app.
type AppVersion struct {
	Number int    `json:"number"`
	State  string `json:"state"`
	// Source is the archive, folder or command as given.
	Source string `json:"source"`
	// Folder is tendril's copy, or the given folder if InPlace; "" for a failed version or a command.
	Folder  string `json:"folder,omitempty"`
	InPlace bool   `json:"in_place,omitempty"`
	// Digest is the archive's SHA-256 for a version deployed to all instances; "" if it cannot be restored.
	Digest     string    `json:"digest,omitempty"`
	Of         int       `json:"of,omitempty"`       // the version that a rollback restored; 0 for a deployment
	Replaced   []int     `json:"replaced,omitempty"` // versions previously in Folder, newest last
	DeployedAt time.Time `json:"deployed_at"`
	By         string    `json:"by"` // [Caller].Who, "start" or "signal"
	// Size is in bytes, measured when the version started to serve.
	Size  int64  `json:"size,omitempty"`
	Error string `json:"error,omitempty"`
}

// DeployResult is a successful deployment.
type DeployResult struct {
	// From and To are display names of versions.
	From       string   `json:"from,omitempty"`
	To         string   `json:"to"`
	DurationMS int64    `json:"duration_ms"`       // includes stopping the previous version
	Of         int      `json:"of,omitempty"`      // the version that a rollback restored; 0 for a deployment
	Later      []string `json:"later,omitempty"`   // changed settings that take effect at the next start
	Rollout    int      `json:"rollout,omitempty"` // version still being deployed to all instances, or 0
}

// DeployError is the failure of a started deployment.
type DeployError struct {
	// Switched means that the new version is serving although a later step failed. Otherwise, the previous version
	// still is, unless Stopped is set.
	Switched bool
	Stopped  bool // the environment stopped during the deployment; no version is serving
	Aborted  bool
	// Step is the failed hook, build command or process, or "".
	Step   string
	Output []string
	Err    error
}

func (e *DeployError) Error() string { return e.Err.Error() }

func (e *DeployError) Unwrap() error { return e.Err }

// ReloadResult is a reload's effect; the zero value means none.
type ReloadResult struct {
	// File is the file with the periodic tasks. NotScheduled is the reason they are not scheduled, or "".
	File         string        `json:"file,omitempty"`
	Tasks        int           `json:"tasks"`
	NotScheduled string        `json:"notScheduled,omitempty"`
	Deployed     *DeployResult `json:"deployed,omitempty"` // set if the app's files changed and it was redeployed
	// Settings are the names of changed settings that are in force. Later are the names of those that take effect at
	// the next start.
	Settings  []string `json:"settings,omitempty"`
	Later     []string `json:"later,omitempty"`
	Unchanged string   `json:"unchanged,omitempty"` // the checked folder, if there was nothing to reload
}

// QueuesAt returns where the queues are, such as "Amazon SQS".
func (s *Status) QueuesAt() string {
	switch {
	case s.Backend != BackendSQS:
		return "embedded queue"
	case s.QueueServer != "":
		return "server " + s.QueueServer
	}
	return "Amazon SQS"
}
