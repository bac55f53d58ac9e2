package queue

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// MaxVisibility is the longest time that a message may stay invisible, counted from
// its receive (SQS: 12 hours).
const MaxVisibility = 12 * time.Hour

// Message is one message as one receive returned it.
type Message struct {
	// ID is the queue's message id. It stays the same in all receives and in the
	// dead-letter queue.
	ID string
	// Body is the text, byte for byte.
	Body string
	// Attributes are the message's own attributes, sorted by name.
	Attributes []Attribute
	// ReceiptHandle identifies this receive for Delete and ChangeVisibility.
	ReceiptHandle string
	// ReceiveCount is how often the message was received, including this receive: 1
	// the first time.
	ReceiveCount int
	// Attempt is ReceiveCount without the receives before the message came to this
	// queue, by a dead-lettering or a redrive. 0 means that the queue does not tell.
	// A worker sets it before a delivery, and leaves out receives that, as far as it
	// knows, never reached the app.
	Attempt int
	// SentAt and FirstReceivedAt have millisecond precision.
	SentAt, FirstReceivedAt time.Time
	// SenderID is the sender's account or principal id; "" when unknown.
	SenderID string
	// GroupID, DedupID and SequenceNumber are set on FIFO queues. GroupID may
	// also be set on a standard queue, where it names a tenant.
	GroupID, DedupID, SequenceNumber string
	// TraceHeader is the AWSTraceHeader system attribute; "" when absent.
	TraceHeader string
	// DeadLetterSource is the ARN of the queue from which the message was
	// dead-lettered; "" if it never was.
	DeadLetterSource string
	// Run is the scheduled run that the message is, as [ParseRun] returned it before the
	// delivery; nil for an ordinary message, and before that.
	Run *Run
}

// Attribute is one message attribute. Type is "String", "Number" or "Binary",
// optionally followed by a dot and a custom label ("Number.int").
type Attribute struct {
	Name, Type string
	// Value is the text of a String or a Number, or the raw bytes of a Binary.
	Value string
}

// IsBinary reports whether the value is raw bytes.
func (a Attribute) IsBinary() bool {
	return a.Type == "Binary" || strings.HasPrefix(a.Type, "Binary.")
}

// Attribute returns the value of the named attribute, "" when the message does not
// have it.
func (m *Message) Attribute(name string) string {
	for i := range m.Attributes {
		if m.Attributes[i].Name == name {
			return m.Attributes[i].Value
		}
	}
	return ""
}

// Outgoing is one message to send.
type Outgoing struct {
	Body       string
	Attributes []Attribute
	// Delay keeps the new message invisible for 0 to 15 minutes; nil means the
	// queue's own DelaySeconds.
	Delay *time.Duration
	// NotBefore keeps the new message invisible until then, however long that is; the zero time means no such time. Only
	// the embedded queue knows it, and only standard queues take it. [AttributeNotBefore] says the same.
	NotBefore time.Time
	// GroupID is required on FIFO queues, and so is DedupID unless the queue has
	// content-based deduplication.
	GroupID, DedupID string
	// TraceHeader becomes the AWSTraceHeader system attribute; "" for none.
	TraceHeader string
}

// Sent is the queue's answer to one [Outgoing].
type Sent struct {
	ID             string // for a FIFO duplicate, the first message's
	SequenceNumber string // on FIFO queues
	// Err is why this entry was rejected; nil means that the message is stored
	// durably.
	Err error
}

// ReceiveRequest is a request for up to Max messages.
type ReceiveRequest struct {
	// Max is 1 to [MaxBatch].
	Max int
	// Wait is how long to wait for a first message, 0 to 20 s; nil means the
	// queue's own ReceiveMessageWaitTimeSeconds.
	Wait *time.Duration
	// Visibility is the visibility timeout of the received messages, 0 to
	// [MaxVisibility]; nil means the queue's own VisibilityTimeout.
	Visibility *time.Duration
	// Stop ends the wait, as its time would, once it is closed; nil for never. Only the embedded queue
	// knows it.
	Stop <-chan struct{}
	// CountAtPost tells that Posting will be called with each receipt before its message is posted. If the process is
	// killed before, the receive does not count. Only the embedded queue knows it.
	CountAtPost bool
	// AttemptID makes a FIFO receive repeatable for 5 minutes
	// (ReceiveRequestAttemptId); "" for none.
	AttemptID string
	// Room is the memory for the messages; nil where there is plenty. Only the embedded queue knows it.
	Room Room
}

// ReceiveBytes is how many bytes of messages a receive with a [Room] may bring before the last one.
const ReceiveBytes = 256 << 10

// Room is memory for the messages of one receive.
type Room interface {
	// Acquire waits for as much as a receive can need.
	Acquire(ctx context.Context) error
	// Keep gives back what messages of so many bytes do not need.
	Keep(bytes int64)
}

// VisibilityChange sets the visibility timeout of one received message.
type VisibilityChange struct {
	ReceiptHandle string
	// Visibility counts from now, 0 to [MaxVisibility]; 0 makes the message visible at
	// once.
	Visibility time.Duration
	// Unread means that the message was not delivered to the app. The embedded queue
	// then does not count the receive; Amazon SQS cannot do that.
	Unread bool
}

// ParseRedrivePolicy returns the name of the dead-letter queue and the maxReceiveCount,
// which may be a string, of a RedrivePolicy attribute; "" and 0 where it has none.
func ParseRedrivePolicy(policy string) (deadLetterQueue string, maxReceives int) {
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return "", 0
	}
	maxReceives, _ = strconv.Atoi(strings.Trim(string(p.Max), `"`))
	return p.Target[strings.LastIndexByte(p.Target, ':')+1:], maxReceives
}

// The attributes that make a message a scheduled run of a periodic task, in the words
// of Elastic Beanstalk's daemon, so that each delivers what the other enqueued.
const (
	// RunPrefix begins the names of all of them. An app is never sent an attribute
	// whose name begins so.
	RunPrefix     = "beanstalk.sqsd."
	AttributePath = RunPrefix + "path"           // posted to; a message without it is an ordinary one
	AttributeTask = RunPrefix + "task_name"      // the task's name
	AttributeTime = RunPrefix + "scheduled_time" // in UTC, in RunTimeLayout
	// AttributeRun holds the id of a run that a person asked for: it does not follow
	// from task and time.
	AttributeRun  = RunPrefix + "run_id"
	RunTimeLayout = "2006-01-02 15:04:05 UTC"
)

// AttributeNotBefore is the message attribute by which a client of SQS asks the embedded queue to keep a message
// invisible until a time: a String in RFC 3339, or a Number of seconds since 1970.
const AttributeNotBefore = "tendril.not_before"

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
	var r Run
	isRun := false
	for i := range m.Attributes {
		switch a := &m.Attributes[i]; {
		case !a.IsText():
		case a.Name == AttributePath:
			isRun, r.Path = true, a.Value
		case a.Name == AttributeTask:
			r.Task = a.Value
		case a.Name == AttributeTime:
			r.Time = a.Value
		case a.Name == AttributeRun:
			r.ID = a.Value
		}
	}

	if !isRun {
		return nil
	}

	if at, err := time.Parse(RunTimeLayout, r.Time); err == nil {
		r.ScheduledAt = at
	}

	run := r // only a run is allocated
	return &run
}

// IsText reports whether the value is text: of type String or Number, or of a custom
// type that begins so.
func (a *Attribute) IsText() bool {
	return strings.HasPrefix(a.Type, "String") || strings.HasPrefix(a.Type, "Number")
}

// TaskTimes are what a registry knows of the times of a periodic task.
type TaskTimes struct {
	// UpTo is the scheduled time up to which its runs are accounted for: enqueued, or left out.
	UpTo time.Time
	// From is the earliest time of day at which an instance had the task with its schedule. It is zero where that
	// was not recorded.
	From time.Time
}

// Lease is the single row by which several instances agree on the leader. The zero
// value stands for a lease that was never written.
//
// A store replaces it by compare-and-swap on Version alone. It contains no time of
// day: an instance that waits for the end of a lease watches for Duration, on its own
// clock, whether Version changes.
type Lease struct {
	Owner string // names the holder, for display only
	// Version is different in every write and never used twice; "" only in the zero
	// value.
	Version string
	// Term counts the changes of the holder, from 1. A renewal keeps it. It is a
	// fencing token: a write of a leader is accepted only while the stored lease has
	// that leader's term and is not released.
	Term int64
	// Duration is how long this Version is valid after an instance first saw it, in
	// whole milliseconds.
	Duration time.Duration
	// Released is true after the holder gave the lease up: another instance may
	// acquire it at once.
	Released bool
	Data     string // what the holder says about itself, for display; may be ""
}
