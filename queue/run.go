package queue

import (
	"strings"
	"time"
)

// The attributes that make a message a scheduled run of a periodic task, in the words
// of Elastic Beanstalk's daemon, so that each delivers what the other enqueued.
const (
	// RunPrefix begins the names of all of them. An app is never sent an attribute
	// whose name begins so.
	RunPrefix = "beanstalk.sqsd."
	// AttributePath holds the path that is posted to. A message without it is an
	// ordinary one.
	AttributePath = RunPrefix + "path"
	// AttributeTask holds the task's name.
	AttributeTask = RunPrefix + "task_name"
	// AttributeTime holds the scheduled time in UTC, in [RunTimeLayout].
	AttributeTime = RunPrefix + "scheduled_time"
	// AttributeRun holds the id of a run that a person asked for: it does not follow
	// from task and time.
	AttributeRun = RunPrefix + "run_id"
	// RunTimeLayout is the layout of the scheduled time.
	RunTimeLayout = "2006-01-02 15:04:05 UTC"
)

// Run is what a message says about the scheduled run that it is.
type Run struct {
	// Path is where it is posted, as the message says it: anybody may have written it.
	Path string
	// Task is the task's name, Time when it was due, ID the id of a run that a person
	// asked for: each "" when the message does not say.
	Task, Time, ID string
	// ScheduledAt is Time in whole seconds; zero when it is not in [RunTimeLayout].
	ScheduledAt time.Time
}

// Named reports whether the message says which run of which task it is.
func (r *Run) Named() bool { return r != nil && r.Task != "" && !r.ScheduledAt.IsZero() }

// ParseRun returns what m says about the scheduled run that it is; nil for an ordinary
// message, which is one without a path as text.
func ParseRun(m *Message) *Run {
	var r *Run
	for i := range m.Attributes {
		if a := &m.Attributes[i]; a.Name == AttributePath && a.IsText() {
			r = &Run{Path: a.Value}
		}
	}
	if r == nil {
		return nil
	}
	for i := range m.Attributes {
		switch a := &m.Attributes[i]; {
		case !a.IsText():
		case a.Name == AttributeTask:
			r.Task = a.Value
		case a.Name == AttributeTime:
			r.Time = a.Value
		case a.Name == AttributeRun:
			r.ID = a.Value
		}
	}
	if at, err := time.Parse(RunTimeLayout, r.Time); err == nil {
		r.ScheduledAt = at
	}
	return r
}

// IsText reports whether the value is text: of type String or Number, or of a custom
// type that begins so.
func (a *Attribute) IsText() bool {
	return strings.HasPrefix(a.Type, "String") || strings.HasPrefix(a.Type, "Number")
}
