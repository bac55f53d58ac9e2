package health

import (
	"slices"
	"strings"
	"time"
)

// Status is the health of an environment or instance.
type Status string

// Statuses, named as in Elastic Beanstalk.
const (
	Ok       Status = "Ok"
	Info     Status = "Info"
	Warning  Status = "Warning"
	Degraded Status = "Degraded"
	Severe   Status = "Severe"
	Pending  Status = "Pending"
	NoData   Status = "No Data"
)

// Code returns the value of Elastic Beanstalk's EnvironmentHealth metric. Pending is 5 (Unknown).
func (s Status) Code() int {
	switch s {
	case Ok:
		return 0
	case Info:
		return 1
	case NoData:
		return 10
	case Warning:
		return 15
	case Degraded:
		return 20
	case Severe:
		return 25
	}
	return 5
}

// Color is the color of a status.
type Color string

// Colors of statuses.
const (
	Green  Color = "Green"
	Yellow Color = "Yellow"
	Red    Color = "Red"
	Grey   Color = "Grey"
)

// traits are ordered by severity. The first entry stands for all grey statuses.
var traits = [...]struct {
	status Status
	color  Color
	exit   int
}{{"", Grey, 3}, {Ok, Green, 0}, {Info, Green, 0}, {Warning, Yellow, 1}, {Degraded, Red, 2}, {Severe, Red, 2}}

func (s Status) rank() int {
	for i, t := range traits {
		if t.status == s {
			return i
		}
	}
	return 0
}

// Color returns the status's color; Grey if it is invalid.
func (s Status) Color() Color { return traits[s.rank()].color }

// ExitCode returns 0 for Ok and Info, 1 for Warning, 2 for Degraded and Severe, and 3 for other statuses.
func (s Status) ExitCode() int { return traits[s.rank()].exit }

// Report is the health of an instance.
type Report struct {
	Status Status `json:"status"`
	Color  Color  `json:"color"`
	// Causes are the texts of Details, worst first.
	Causes  []string  `json:"causes"`
	Details []Cause   `json:"details,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Environment is nil without a shared registry.
	Environment *Environment `json:"environment,omitempty"`
}

// Cause is one reason for a status.
type Cause struct {
	// Kind and Name identify the cause. Name is the affected queue, process or task, or "".
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Status Status `json:"status"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
	// Since is when the cause became as bad as Status. Until is when it ended, or zero; an ended cause counts for another
	// minute.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Kinds that views treat specially.
const (
	KindDeadLetters = "dead-letters" // Name is the dead-letter queue
	KindPaused      = "paused"       // Name is the queue, or "" for all
)

// Head returns text such as "Severe for 3 minutes, until 20 seconds ago".
func (c *Cause) Head(now time.Time) string {
	head := string(c.Status)
	if c.Since.IsZero() {
		return head
	}
	if c.Until.IsZero() {
		return head + " for " + ago(now.Sub(c.Since))
	}
	return head + " for " + ago(c.Until.Sub(c.Since)) + ", until " + ago(now.Sub(c.Until)) + " ago"
}

type causeID struct{ kind, name string }

// Causes from older versions have no kind.
func (c *Cause) id() causeID {
	if c.Kind == "" {
		return causeID{"", withoutMeasurements(c.Text)}
	}
	return causeID{c.Kind, c.Name}
}

// Each returns Details or, without them, Causes with the report's status.
func (r *Report) Each() []Cause {
	if len(r.Details) > 0 {
		return r.Details
	}
	causes := make([]Cause, len(r.Causes))
	for i, text := range r.Causes {
		causes[i] = Cause{Status: r.Status, Text: text}
	}
	return causes
}

// Explaining returns the causes as bad as the report's status.
func (r *Report) Explaining() (causes []Cause) {
	for _, c := range r.Each() {
		if c.Status.weight() >= r.Status.weight() {
			causes = append(causes, c)
		}
	}
	return causes
}

// LogAttrs returns the causes and remedies as attributes of a log line.
func (r *Report) LogAttrs() (attrs []any) {
	var remedies []string
	for _, c := range r.Details {
		if c.Remedy != "" && !slices.Contains(remedies, c.Remedy) {
			remedies = append(remedies, c.Remedy)
		}
	}
	if len(r.Causes) > 0 {
		attrs = append(attrs, "reason", strings.Join(r.Causes, " "))
	}
	if len(remedies) > 0 {
		attrs = append(attrs, "hint", strings.Join(remedies, "; "))
	}
	return attrs
}
