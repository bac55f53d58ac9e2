package api

import (
	"fmt"
	"strings"
	"time"

	"tendril/internal/observe/health"
)

// The states of an environment, as [Status] names them.
const (
	StateStarting = "starting"
	StateRunning  = "running"
	StateDraining = "draining"
)

// The backends of an environment, as [Status] names them.
const (
	BackendEmbedded = "embedded"
	BackendSQS      = "sqs"
)

// Status is everything the environment says about itself at one moment.
type Status struct {
	// Environment is its name, Version that of the program, and PID the process that answers.
	Environment string `json:"environment"`
	Version     string `json:"version"`
	PID         int    `json:"pid"`
	// State is one of the State constants, "" when nobody said; Backend one of the Backend
	// constants.
	State   string `json:"state,omitempty"`
	Backend string `json:"backend"`
	// StartedAt is when the process began.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Ready is whether every one of the Checks is OK.
	Ready  bool           `json:"ready"`
	Checks []health.Check `json:"checks,omitempty"`
	// Queues are the embedded queues, sorted by name, or what the environment
	// knows about its queue on Amazon SQS.
	Queues []Queue `json:"queues"`
	// Ledger is the account of all embedded queues together, deleted ones
	// included; nil on Amazon SQS.
	Ledger *Account `json:"ledger,omitempty"`
	// Workers hold one entry for each queue that is worked on, in the order in
	// which they were given; none in a process that only serves queues.
	Workers []Worker `json:"workers,omitempty"`
	// App holds the processes that the environment supervises; empty when it
	// stands beside an app that somebody else runs.
	App []Process `json:"app,omitempty"`
	// Deployment is the newest one, under way or over; nil when there was none
	// since the start.
	Deployment     *Deployment     `json:"deployment,omitempty"`
	PoisonMessages *PoisonMessages `json:"isolation,omitempty"` // nil when there are none
	// Limits hold one entry for each target that is protected.
	Limits  []Limit        `json:"limits,omitempty"`
	Scaling *Scaling       `json:"scaling,omitempty"` // nil where the size is fixed
	Health  *health.Report `json:"health,omitempty"`  // nil when nobody judges it
	Tasks   *TasksStatus   `json:"tasks,omitempty"`   // nil when there are no periodic tasks
	// Problems are the failures among the remembered deliveries, grouped by
	// queue and reason, the most recent first.
	Problems []Problem `json:"problems,omitempty"`
}

// Account says what became of every message that was ever accepted:
//
//	Sent = Done + DeadLettered + Expired + Purged + Live
type Account struct {
	// Sent counts accepted messages, Done those that were delivered and deleted, and
	// DeadLettered those that lie in a dead-letter queue now.
	Sent         int64 `json:"sent"`
	Done         int64 `json:"done"`
	DeadLettered int64 `json:"dead_lettered"`
	// Expired counts those that passed their retention period, Purged those
	// that a person removed.
	Expired int64 `json:"expired"`
	Purged  int64 `json:"purged"`
	// Live counts those that wait, are delayed or are in flight now, dead
	// letters apart.
	Live int64 `json:"live"`
}

// Off returns by how many messages the account does not balance: 0 unless
// something is broken.
func (a Account) Off() int64 {
	return a.Sent - a.Done - a.DeadLettered - a.Expired - a.Purged - a.Live
}

// Ledger accounts for the messages of one queue:
//
//	Sent + MovedIn = Done + DeadLettered + MovedOut + Expired + Purged + Live
type Ledger struct {
	// Sent counts accepted sends (FIFO duplicates are not accepted twice), Done deletes by receipt handle.
	Sent int64 `json:"sent"`
	Done int64 `json:"done"`
	// DeadLettered counts moves to a dead-letter queue by the redrive policy.
	DeadLettered int64 `json:"dead_lettered"`
	// MovedIn counts arrivals by dead-lettering or redrive, MovedOut departures by redrive.
	MovedIn  int64 `json:"moved_in"`
	MovedOut int64 `json:"moved_out"`
	// Expired counts messages that passed their retention period, Purged those removed by an operator.
	Expired int64 `json:"expired"`
	Purged  int64 `json:"purged"`
	// Live counts messages in the queue now: Visible + Delayed + InFlight + Damaged.
	Live     int64 `json:"live"`
	Visible  int64 `json:"visible"`
	Delayed  int64 `json:"delayed"`
	InFlight int64 `json:"in_flight"`
	// Damaged counts messages that are not delivered because they are not stored as they were sent.
	Damaged int64 `json:"damaged,omitempty"`
}

// Queue is one queue, its messages counted and its settings.
type Queue struct {
	Name string `json:"name"`
	ARN  string `json:"arn,omitempty"`
	URL  string `json:"url,omitempty"` // set for a queue on Amazon SQS
	FIFO bool   `json:"fifo"`
	// Ledger accounts for every message; on Amazon SQS only the counts of live
	// messages are known.
	Ledger Ledger `json:"ledger"`
	// OldestSeconds is the age of the oldest live message; 0 when empty or
	// unknown.
	OldestSeconds float64 `json:"oldest_seconds"`
	// Newest is the place of the newest message of an embedded queue, counted from 1 over all that it ever took. An act
	// on many messages that is given it as through leaves those alone that arrive later.
	Newest int64 `json:"newest,omitempty"`
	// DeadLetterQueue is the name of the queue that its redrive policy points
	// at; "" without one. MaxReceives is the policy's maxReceiveCount.
	DeadLetterQueue string `json:"dead_letter_queue,omitempty"`
	MaxReceives     int    `json:"max_receives,omitempty"`
	// DeadLetterQueueMissing is whether that embedded queue does not exist, so that messages are retried instead.
	DeadLetterQueueMissing bool `json:"dead_letter_queue_missing,omitempty"`
	// DeadLetterSources are the names of the queues that dead-letter into this
	// one. Filled for one queue, not in lists, as Attributes are.
	DeadLetterSources []string `json:"dead_letter_sources,omitempty"`
	// Paused is whether this environment's worker was told not to receive from
	// it, and PauseReason what the person said.
	Paused      bool              `json:"paused,omitempty"`
	PauseReason string            `json:"pause_reason,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
}

// Problem says what is wrong with the queue itself; "" for nothing.
func (q *Queue) Problem() string {
	var problems []string
	if q.DeadLetterQueueMissing {
		problems = append(problems, "its dead-letter queue "+q.DeadLetterQueue+" does not exist")
	}
	if q.Ledger.Damaged > 0 {
		problems = append(problems, fmt.Sprintf("%d of its messages cannot be delivered: they are damaged", q.Ledger.Damaged))
	}
	return strings.Join(problems, "; ")
}

// Worker is what the part that receives from one queue and delivers is doing.
type Worker struct {
	Queue string `json:"queue"`
	// Target is the URL that messages are posted to, or the function that is
	// invoked with them.
	Target      string `json:"target,omitempty"`
	Concurrency int    `json:"concurrency"` // the most messages at once
	// InWork counts messages that the app has now; Prefetched those received
	// and waiting for a free slot.
	InWork      int    `json:"in_work"`
	Prefetched  int    `json:"prefetched"`
	Paused      bool   `json:"paused"` // by a person
	PauseReason string `json:"pause_reason,omitempty"`
	// Receiving is false while a gate is closed, the worker is paused or the
	// target's breaker lets nothing begin; GateReasons then says why, a few words each.
	Receiving   bool     `json:"receiving"`
	GateReasons []string `json:"gate_reasons,omitempty"`
	WorkerCounts
	// OldestSeconds is the age of the oldest message in hand that is not done;
	// LongestWaitSeconds the longest that one waited from its send to its
	// delivery, of those begun in the last minute. 0 when there are none.
	OldestSeconds      float64 `json:"oldest_seconds"`
	LongestWaitSeconds float64 `json:"longest_wait_seconds"`
	// TurnShare is the share, 0 to 1, of the deliveries begun in the last minute
	// that were this queue's; 0 when nothing began.
	TurnShare float64 `json:"turn_share"`
	LimitedBy string  `json:"limited_by,omitempty"` // what keeps messages back for the target's sake
	PerSecond float64 `json:"per_second,omitempty"` // recently settled messages
	// LastError is the most recent trouble with the queue; "" when the last
	// call went well.
	LastError string `json:"last_error,omitempty"`
}

// WorkerCounts are messages since the process began. Done, Failed and Unreached are
// outcomes of deliveries; Returned were given back unposted; Expired were deleted unposted
// because they were older than the retention period, and Filtered because the filter did not
// match them; Throttled were refused by the target before it ran them.
type WorkerCounts struct {
	Received  int64 `json:"received"`
	Done      int64 `json:"done"`
	Failed    int64 `json:"failed"`
	Unreached int64 `json:"unreached"`
	Returned  int64 `json:"given_back"`
	Expired   int64 `json:"expired"`
	Filtered  int64 `json:"filtered"`
	Throttled int64 `json:"throttled"`
}

// Process is one process of the app.
type Process struct {
	// Name is the one of the Procfile, "web" for a single command; State a word of the
	// supervisor, such as "running". PID is 0 while it does not run.
	Name  string `json:"name"`
	State string `json:"state"`
	PID   int    `json:"pid,omitempty"`
	Port  int    `json:"port,omitempty"` // where it takes requests on this machine; 0 for none
	// Ready is whether it takes requests; true for a process without a port
	// as soon as it runs.
	Ready    bool      `json:"ready"`
	Since    time.Time `json:"since,omitzero"` // when the present state began
	Restarts int       `json:"restarts"`       // starts after the first that nobody asked for
	LastExit string    `json:"last_exit,omitempty"`
	// NotReady is why it does not take requests; "" where it does, and where that is not known.
	NotReady string `json:"not_ready,omitempty"`
	// Memory is the resident memory of the process and all that it started, in bytes, and CPUPercent their share of one
	// processor lately; 0 where that is not known.
	Memory     int64   `json:"memory,omitempty"`
	CPUPercent float64 `json:"cpu_percent,omitempty"`
}

// ShownDecisions is the most decisions that a [Scaling] holds.
const ShownDecisions = 20

// Scaling is how the size is chosen.
type Scaling struct {
	// Target is what has the size: "processes" for the app's processes on this
	// machine, "asg:" and a name for an Auto Scaling group, "ecs:", a cluster, "/" and a
	// service of Amazon ECS, "publish" where figures are published for something else to
	// scale by, "none" where nothing is scaled although the settings say so: see Problem.
	Target  string `json:"target"`
	MinSize int    `json:"min_size"`
	MaxSize int    `json:"max_size"`
	// Desired is the size that is wanted, 0 before the first decision; Ready how
	// many can work now.
	Desired int `json:"desired"`
	Ready   int `json:"ready"`
	// IsLeader is whether this instance sets the size, or publishes: of those that
	// share a queue only one does. Always true for processes.
	IsLeader bool `json:"in_charge"`
	// Protection is "on" while this instance is kept from scale-in, "off" while it is not, and "" where nothing could
	// take it away.
	Protection string `json:"protection,omitempty"`
	// Problem is the last call that failed and has not worked since; "" for none.
	Problem string `json:"problem,omitempty"`
	// Decisions are the last ones, at most [ShownDecisions], newest first.
	Decisions []ScaleDecision `json:"decisions,omitempty"`
}

// ScaleDecision is one decision about the size, or the same one made several
// times in a row.
type ScaleDecision struct {
	// At is when it was made first, Until when last, and Times how often.
	At      time.Time `json:"at"`
	Until   time.Time `json:"until"`
	Times   int       `json:"times"`
	From    int       `json:"from"`    // the size that was found
	Desired int       `json:"desired"` // the one that is wanted
	Rule    string    `json:"rule"`    // one word for what decided
	Why     string    `json:"why"`
	// Applied is whether the size was set; NotApplied says why not, where it was
	// to be.
	Applied    bool   `json:"applied"`
	NotApplied string `json:"not_applied,omitempty"`
	// Inputs are those of the last time; nil in a status.
	Inputs *ScaleInputs `json:"inputs,omitempty"`
}

// The states of a deployment, as [Deployment] names them, in their order.
const (
	DeployPreparing  = "preparing"   // hooks and build commands run
	DeployStarting   = "starting"    // the new version comes up beside the old one
	DeployFinishing  = "finishing"   // the new version has the messages; the last hooks run
	DeployDone       = "done"        // it went well
	DeployRolledBack = "rolled back" // the previous version is still serving
	DeployFailed     = "failed"      // the new version serves, and something after that failed
)

// Deployment is a change of the app's version, under way or over.
type Deployment struct {
	State string    `json:"state"`          // one of the Deploy constants
	Step  string    `json:"step,omitempty"` // the hook or build command that runs now, or failed
	From  string    `json:"from,omitempty"` // the version that served before
	To    string    `json:"to"`             // the new one
	Since time.Time `json:"since"`
	Ended time.Time `json:"ended,omitzero"`  // zero while it is under way
	Error string    `json:"error,omitempty"` // why it went wrong
	// Aborted tells that somebody asked for the end, rather than that something failed.
	Aborted bool `json:"aborted,omitempty"`
}

// Over reports whether the deployment has ended.
func (d *Deployment) Over() bool {
	return d.State == DeployDone || d.State == DeployRolledBack || d.State == DeployFailed
}

// PoisonMessages counts the messages that crash the app.
type PoisonMessages struct {
	// Quarantined counts the messages that are delivered alone, Poison those of them
	// that crashed the app.
	Quarantined int `json:"suspects"`
	Poison      int `json:"killers"`
	// Broken tells that every message crashes the app, so that it is the app that is
	// wrong and not the messages.
	Broken bool `json:"broken,omitempty"`
}

// Limit is how one target is protected.
type Limit struct {
	Target string  `json:"target"`         // as in [Worker]
	Rate   float64 `json:"rate,omitempty"` // messages a second; 0 for no limit
	InWork int     `json:"in_work"`        // deliveries, a batch being one
	// Concurrency is the most deliveries at once that it is given now: what it
	// was found to take, or less while it comes back; 0 for no limit.
	Concurrency int `json:"concurrency,omitempty"`
	// Breaker is "closed", "open" or "half-open"; "" for none. TrialAt is when
	// the open one lets a trial begin.
	Breaker string    `json:"breaker,omitempty"`
	TrialAt time.Time `json:"trial_at,omitzero"`
	Failing float64   `json:"failing,omitempty"` // share of its deliveries lately, 0 to 1
	Refused int64     `json:"refused"`           // how often a message was kept back
}

// The states of a version of the app, as [AppVersion] names them.
const (
	VersionLive   = "live"   // it serves
	VersionKept   = "kept"   // it served before, and can be rolled back to
	VersionFailed = "failed" // its deployment failed, and nothing of it was kept
	// VersionInPlace: it served before in the folder that was named, and cannot be rolled back to.
	VersionInPlace = "in place"
)

// AppVersion is a version of the app that was deployed.
type AppVersion struct {
	Number int    `json:"number"`
	State  string `json:"state"` // one of the Version constants
	// Source is the archive or folder as it was named, or the command. Folder is where the version lies, "" for a failed
	// one and a command: a copy of tendril's own, or with InPlace the folder that was named.
	Source  string `json:"source"`
	Folder  string `json:"folder,omitempty"`
	InPlace bool   `json:"in_place,omitempty"`
	// Of is the number of the version that it is once more, after a rollback; 0 for a deployment.
	Of int `json:"of,omitempty"`
	// Replaced are the numbers of the versions that were in Folder before, the newest last.
	Replaced   []int     `json:"replaced,omitempty"`
	DeployedAt time.Time `json:"deployed_at"`
	By         string    `json:"by"` // the caller as in [Caller], "start" or "signal"
	// Size is that of the files in its folder when it began to serve, in bytes.
	Size  int64  `json:"size,omitempty"`
	Error string `json:"error,omitempty"` // why it failed
}

// DeployResult is a deployment that went well.
type DeployResult struct {
	// From and To name the version that served before and the one that serves
	// now, for people. DurationMS is how long it took until the old one was gone.
	From       string `json:"from,omitempty"`
	To         string `json:"to"`
	DurationMS int64  `json:"duration_ms"`
	// Of is the number of the version that was rolled back to; 0 for a deployment.
	Of int `json:"of,omitempty"`
	// Later names the settings that changed with it and wait for the next start.
	Later []string `json:"later,omitempty"`
}

// DeployError is a deployment that was begun and went wrong.
type DeployError struct {
	// Switched tells that the new version has the messages all the same: what
	// failed came after. Otherwise the previous version is still serving.
	Switched bool
	// Stopped tells that it ended since the environment stops, and no version is serving.
	Stopped bool
	// Aborted tells that somebody asked for its end.
	Aborted bool
	// Step names the hook, the build command or the process that failed; "" when
	// it was none of them. Output holds the last lines that it wrote, Err is the cause.
	Step   string
	Output []string
	Err    error
}

// Error returns the cause's text.
func (e *DeployError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DeployError) Unwrap() error { return e.Err }

// ReloadResult says what a reload did. The zero value is a reload after which
// everything is as it was.
type ReloadResult struct {
	// File is the file of periodic tasks that was read, Tasks how many of them are
	// in force now; "" and 0 when none was read. NotScheduled says why they are not in force.
	File         string `json:"file,omitempty"`
	Tasks        int    `json:"tasks"`
	NotScheduled string `json:"notScheduled,omitempty"`
	// Deployed is what took the place of the app's version that ran, since files
	// of it had changed; nil when the app runs on.
	Deployed *DeployResult `json:"deployed,omitempty"`
	// Settings names the settings that changed and are in force now, Later those
	// that wait for the next start.
	Settings []string `json:"settings,omitempty"`
	Later    []string `json:"later,omitempty"`
	// Unchanged is the folder in which nothing had changed; "" when something was
	// reloaded.
	Unchanged string `json:"unchanged,omitempty"`
}
