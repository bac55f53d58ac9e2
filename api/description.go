package api

import (
	"strings"
	"time"
)

// Description says what an environment consists of: what runs, or what 'tendril up' would run. It
// holds no secret; a value that looks like one is replaced.
type Description struct {
	Environment string `json:"environment"`
	// Running is whether this describes a process, and not what would be started.
	Running bool `json:"running"`
	// Version is that of tendril, AppVersion names the version of the app; "" when tendril runs none.
	Version    string `json:"version"`
	AppVersion string `json:"app_version,omitempty"`
	// PID is the process, 0 without one; StartedAt when it began, State one of the State constants.
	PID       int       `json:"pid,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	State     string    `json:"state,omitempty"`
	// Region is that of queues on Amazon SQS, and the one in the ARNs of embedded queues.
	Region string `json:"region"`
	// Queues are those that are worked on, in the order of the settings.
	Queues []DescribedQueue `json:"queues"`
	// Processes are what tendril starts: the app's processes, or one function on this machine.
	Processes []DescribedProcess `json:"processes,omitempty"`
	Tasks     *TasksStatus       `json:"tasks,omitempty"` // nil when there are no periodic tasks
	// Election says how instances agree on a leader, "" when nothing needs one; Leader who that is, nil
	// without a process.
	Election string  `json:"election,omitempty"`
	Leader   *Leader `json:"leader,omitempty"`
	// Scaling is nil where the size is fixed. Without a process it holds target and bounds.
	Scaling *Scaling `json:"scaling,omitempty"`
	// Deployments are the last 20 since the start, newest first.
	Deployments []Deployment `json:"deployments,omitempty"`
	// Resources are what the environment uses on AWS.
	Resources []Resource `json:"resources"`
	Places
	// Options are all options in force, in the order of docs/options.md. Changes are what the settings
	// say by now and the process does not follow yet.
	Options []DescribedOption `json:"options"`
	Changes []OptionChange    `json:"changes,omitempty"`
	// Notes are what could not be found out, and why.
	Notes []string `json:"notes,omitempty"`
}

// Places are where an environment listens, and the files that it reads and writes.
type Places struct {
	Ports []Place `json:"ports"`
	Files []Place `json:"files"`
}

// Place is an address or a path.
type Place struct {
	Use string `json:"use"` // in a few words
	At  string `json:"at"`  // host:port, or the path
}

// DescribedQueue is a queue, what its messages go to, and its dead-letter queue.
type DescribedQueue struct {
	Name    string `json:"name"`
	Backend string `json:"backend"`       // one of the Backend constants
	URL     string `json:"url,omitempty"` // "" when it is known at the start only
	ARN     string `json:"arn,omitempty"`
	FIFO    bool   `json:"fifo"`
	// Target is the URL that messages are posted to, "lambda:" and a function of AWS Lambda, or the
	// command of a function on this machine; "" for a dead-letter queue.
	Target string `json:"target,omitempty"`
	// Attributes are those in effect, by their names in SQS; those that 'tendril up' would set when nothing runs.
	Attributes map[string]string `json:"attributes,omitempty"`
	// DeadLetterQueue is nil without one.
	DeadLetterQueue *DescribedQueue `json:"dead_letter_queue,omitempty"`
	// Settings are those in force for the queue; none for a dead-letter queue.
	Settings []DescribedOption `json:"settings,omitempty"`
}

// DescribedProcess is one command that tendril starts.
type DescribedProcess struct {
	Name    string `json:"name"`
	Command string `json:"command"`
}

// Resource is one thing that the environment uses on AWS.
type Resource struct {
	// Kind says what it is, such as "queue" or "registry table"; Name what it is called there.
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	ARN    string `json:"arn,omitempty"`
	URL    string `json:"url,omitempty"`
	Region string `json:"region,omitempty"`
	// Owned is whether it was created for this environment, so that 'tendril terminate' deletes it. Note
	// says why it is not, or what could not be read.
	Owned bool   `json:"owned"`
	Note  string `json:"note,omitempty"`
}

// OptionValue is a value and where it was set.
type OptionValue struct {
	// Value is as it would be written, "" for none.
	Value string `json:"value"`
	// Layer is "default", "bundle", "file", "environment" or "flag"; Where the place in it, such as
	// "tendril.yaml:3", "" for a plain default.
	Layer string `json:"layer"`
	Where string `json:"where,omitempty"`
}

// DescribedOption is one option in force.
type DescribedOption struct {
	Name string `json:"name"` // of a queue's own settings the key in tendril.yaml
	OptionValue
	// SetBy holds the value of every layer that set it, the weakest first, where there is more than the default.
	SetBy []OptionValue `json:"set_by,omitempty"`
}

// OptionChange is what the settings say now of an option that has another value in the process.
type OptionChange struct {
	// Name is that of the option, followed by " of " and the queue for one that a queue has for itself.
	Name string `json:"name"`
	OptionValue
	// Restart is whether the change takes effect at the next start only; else at a reload or a deployment.
	Restart bool `json:"restart"`
}

// Option returns the option of that name, and what the settings say by now of it, for any queue too.
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
