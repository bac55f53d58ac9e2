package api

import (
	"strings"
	"time"
)

// Description describes the components of an environment, running or as 'tendril up' would start it. Probable secrets
// are redacted.
type Description struct {
	Environment string `json:"environment"`
	Running     bool   `json:"running"`
	// Version is tendril's version. AppVersion is the app's, or "" without an app.
	Version    string `json:"version"`
	AppVersion string `json:"app_version,omitempty"`
	// PID, StartedAt and State are zero if no process runs.
	PID       int              `json:"pid,omitempty"`
	StartedAt time.Time        `json:"started_at,omitzero"`
	State     string           `json:"state,omitempty"`
	Region    string           `json:"region"` // of the queues on Amazon SQS, or in the ARNs of embedded queues
	Queues    []DescribedQueue `json:"queues"`
	// Processes are the app's processes, and the commands of local Lambda functions.
	Processes []DescribedProcess `json:"processes,omitempty"`
	Tasks     *TasksStatus       `json:"tasks,omitempty"` // nil without periodic tasks
	// Election describes how the leader is elected; "" if no leader is needed. Leader is nil if no process runs.
	Election string  `json:"election,omitempty"`
	Leader   *Leader `json:"leader,omitempty"`
	// Scaling is nil for a fixed size. If no process runs, only its target and bounds are set.
	Scaling *Scaling `json:"scaling,omitempty"`
	// Deployments are the last 20 since startup, newest first.
	Deployments []Deployment `json:"deployments,omitempty"`
	Resources   []Resource   `json:"resources"`
	Places
	Options []DescribedOption `json:"options"`
	Changes []OptionChange    `json:"changes,omitempty"`
	Notes   []string          `json:"notes,omitempty"`
}

// Places are an environment's addresses and files.
type Places struct {
	Ports []Place `json:"ports"`
	Files []Place `json:"files"`
}

// Place is an address or a path.
type Place struct {
	Use string `json:"use"`
	At  string `json:"at"` // host:port or path
}

// DescribedQueue is a queue with its target and dead-letter queue.
type DescribedQueue struct {
	Name    string `json:"name"`
	Backend string `json:"backend"`       // a Backend constant
	URL     string `json:"url,omitempty"` // "" if unknown until startup
	ARN     string `json:"arn,omitempty"`
	FIFO    bool   `json:"fifo"`
	// Target is a URL, "lambda:" and an AWS Lambda function's name, or a local function's command; "" for a
	// dead-letter queue.
	Target          string            `json:"target,omitempty"`
	Attributes      map[string]string `json:"attributes,omitempty"`
	DeadLetterQueue *DescribedQueue   `json:"dead_letter_queue,omitempty"`
	Settings        []DescribedOption `json:"settings,omitempty"`
}

// DescribedProcess is a command started by tendril.
type DescribedProcess struct {
	Name    string `json:"name"`
	Command string `json:"command"`
}

// Resource is an AWS resource of the environment.
type Resource struct {
	// Kind is the type of resource, such as "queue" or "registry table".
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	ARN    string `json:"arn,omitempty"`
	URL    string `json:"url,omitempty"`
	Region string `json:"region,omitempty"`
	// Owned means that 'tendril terminate' deletes the resource. Otherwise, Note explains why it does not.
	Owned bool   `json:"owned"`
	Note  string `json:"note,omitempty"`
}

// OptionValue is a value and its origin.
type OptionValue struct {
	Value string `json:"value"`
	// Layer is "default", "bundle", "file", "registry", "environment" or "flag".
	Layer string `json:"layer"`
	// Where is a place such as "tendril.yaml:3", or the reason for a default, if any.
	Where string `json:"where,omitempty"`
}

// DescribedOption is an option and its value in force.
type DescribedOption struct {
	Name string `json:"name"` // for a queue's setting, its key in tendril.yaml
	OptionValue
	// SetBy has the default and then each value set, weakest first; empty if only the default applies.
	SetBy []OptionValue `json:"set_by,omitempty"`
}

// OptionChange is an option whose configured value is not in force.
type OptionChange struct {
	// Name ends with " of " and the queue's name for one queue's setting.
	Name string `json:"name"`
	OptionValue
	// Restart means that only a restart of the environment applies the change.
	Restart     bool `json:"restart"`
	RestartsApp bool `json:"restarts_app,omitempty"`
}

// Option returns the named option and its pending changes, including changes for single queues.
func (d *Description) Option(name string) (found DescribedOption, changes []OptionChange) {
	for _, o := range d.Options {
		if o.Name == name {
			found = o
		}
	}
	for _, c := range d.Changes {
		if c.Name == name || strings.HasPrefix(c.Name, name+" of ") {
			changes = append(changes, c)
		}
	}
	return found, changes
}
