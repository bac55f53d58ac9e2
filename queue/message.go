package queue

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxVisibility is the maximum time a message stays invisible after its receive (SQS: 12 hours).
const MaxVisibility = 12 * time.Hour

// Message is a received message.
type Message struct {
	ID   string
	Body string
	// Attributes are sorted by name.
	Attributes []Attribute
	// ReceiptHandle identifies this receive for Delete and ChangeVisibility.
	ReceiptHandle string
	// ReceiveCount includes this receive.
	ReceiveCount int
	// Attempt is ReceiveCount without the receives before the message was moved to this queue; 0 if unknown. Before a
	// delivery, the worker sets it again, without receives that never reached the app.
	Attempt int
	// Both have millisecond precision.
	SentAt, FirstReceivedAt time.Time
	// SenderID is an account or principal ID; may be "".
	SenderID string
	// These are set on FIFO queues. On a standard queue GroupID names a tenant.
	GroupID, DedupID, SequenceNumber string
	// TraceHeader is the AWSTraceHeader system attribute; may be "".
	TraceHeader string
	// DeadLetterSource is the ARN of the queue from which the message was dead-lettered, or "".
	DeadLetterSource string
	// Run is the result of [ParseRun], set before the delivery; nil unless the message stands for a scheduled run.
	Run *Run
}

// Attribute is a message attribute. Type is "String", "Number" or "Binary", optionally followed by a dot and a custom
// label ("Number.int").
type Attribute struct {
	Name, Type string
	// Value is text or, for Binary, raw bytes.
	Value string
}

// IsBinary reports whether the value is raw bytes.
func (a Attribute) IsBinary() bool {
	return a.Type == "Binary" || strings.HasPrefix(a.Type, "Binary.")
}

// SortedAttributes returns the attributes sorted by name: a copy, unless they are sorted already.
func SortedAttributes(attributes []Attribute) []Attribute {
	byName := func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(attributes, byName) {
		return attributes
	}
	return slices.SortedFunc(slices.Values(attributes), byName)
}

// Attribute returns the value of the message attribute called name, or "".
func (m *Message) Attribute(name string) string {
	for i := range m.Attributes {
		if m.Attributes[i].Name == name {
			return m.Attributes[i].Value
		}
	}
	return ""
}

// Outgoing is a message to send.
type Outgoing struct {
	Body       string
	Attributes []Attribute
	// Delay keeps the message invisible for 0 to 15 minutes; nil means the queue's DelaySeconds.
	Delay *time.Duration
	// NotBefore keeps the message invisible until that time, even beyond 15 minutes, like [AttributeNotBefore]; the
	// zero time means no limit. Embedded standard queues only.
	NotBefore time.Time
	// GroupID is required on FIFO queues, and so is DedupID unless the queue has content-based deduplication.
	GroupID, DedupID string
	// TraceHeader becomes the AWSTraceHeader system attribute; may be "".
	TraceHeader string
}

// Sent is the result for one [Outgoing].
type Sent struct {
	ID             string // the first message's for a FIFO duplicate
	SequenceNumber string // FIFO only
	// Err is nil if the message is durable.
	Err error
}

// ReceiveRequest is a request for up to Max messages.
type ReceiveRequest struct {
	Max int
	// Wait is the long-poll time, 0 to 20 s; nil means the queue's ReceiveMessageWaitTimeSeconds.
	Wait *time.Duration
	// Visibility is the visibility timeout, 0 to [MaxVisibility]; nil means the queue's VisibilityTimeout.
	Visibility *time.Duration
	// Stop ends the wait early when closed. Embedded queue only.
	Stop <-chan struct{}
	// CountAtPost announces that Posting will be called before each message is posted to the app. If the process is
	// killed before that call, the receive does not count. Embedded queue only.
	CountAtPost bool
	// AttemptID makes a FIFO receive repeatable for 5 minutes (ReceiveRequestAttemptId); may be "".
	AttemptID string
	// Room limits the memory for the messages; nil means no limit. Embedded queue only.
	Room Room
}

// ReceiveBytes is the size in bytes at which a receive with a [Room] takes no further messages.
const ReceiveBytes = 256 << 10

// Room limits the memory for the messages of one receive.
type Room interface {
	// Acquire waits until the most memory that a receive can need is available.
	Acquire(ctx context.Context) error
	// Keep releases the reserved memory that messages of this size do not need.
	Keep(bytes int64)
}

// VisibilityChange sets the visibility timeout of a received message.
type VisibilityChange struct {
	ReceiptHandle string
	// Visibility is the timeout from now, 0 to [MaxVisibility]; 0 makes the message visible at once.
	Visibility time.Duration
	// Unread means that the message was not delivered. The embedded queue then does not count the receive; Amazon SQS
	// still does.
	Unread bool
}

// ParseRedrivePolicy returns the name of the dead-letter queue and the maxReceiveCount in a RedrivePolicy attribute,
// or "" and 0 if it has none.
func ParseRedrivePolicy(policy string) (deadLetterQueue string, maxReceives int) {
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return "", 0
	}
	maxReceives, _ = strconv.Atoi(strings.Trim(string(p.Max), `"`))
	return NameInARN(p.Target), maxReceives
}

// NameInARN returns the name of the queue with the given ARN. Any other text is itself the name.
func NameInARN(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

// The message attributes of a scheduled run of a periodic task. They are compatible with Elastic Beanstalk's daemon.
const (
	// Attributes with RunPrefix are never sent to apps.
	RunPrefix     = "beanstalk.sqsd."
	AttributePath = RunPrefix + "path" // to post to; required
	AttributeTask = RunPrefix + "task_name"
	AttributeTime = RunPrefix + "scheduled_time" // UTC, as RunTimeLayout
	// AttributeRun is the ID of a manually requested run.
	AttributeRun  = RunPrefix + "run_id"
	RunTimeLayout = "2006-01-02 15:04:05 UTC"
)

// AttributeNotBefore is the message attribute that keeps a message invisible until a time, for SQS clients of the
// embedded queue. Its value is a String in RFC 3339 format, or a Number of seconds since 1970.
const AttributeNotBefore = "tendril.not_before"

// Run describes the scheduled run that a message stands for.
type Run struct {
	// Path is the URL path to post to. Any sender can write it.
	Path string
	// Time is when the run was due, and ID belongs to a manually requested run. Each may be "".
	Task, Time, ID string
	// ScheduledAt is Time in whole seconds; zero if it is not in [RunTimeLayout].
	ScheduledAt time.Time
}

// Named reports whether the task and time of the run are known.
func (r *Run) Named() bool { return r != nil && r.Task != "" && !r.ScheduledAt.IsZero() }

// ParseRun returns the scheduled run that a message stands for, or nil if the message has no path attribute of a text
// type.
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

	run := r // allocate only if the message is a run
	return &run
}

// IsText reports whether the attribute's type is String or Number, possibly with a custom label.
func (a *Attribute) IsText() bool {
	return strings.HasPrefix(a.Type, "String") || strings.HasPrefix(a.Type, "Number")
}

// TaskTimes are the times that the registry stores for a periodic task.
type TaskTimes struct {
	// Runs up to UpTo are enqueued or skipped.
	UpTo time.Time
	// From is the earliest time at which an instance had the task with its schedule; zero if unknown.
	From time.Time
}

// Lease is the record with which instances agree on the leader. The zero value is a lease that was never written.
//
// A store replaces a lease by compare-and-swap on Version. A lease contains no time of day: an instance that waits
// for it to expire measures with its own clock whether Version changes within Duration.
type Lease struct {
	Owner string // for display
	// Version is unique to each write; "" only in the zero value.
	Version string
	// Term increases by one whenever the holder changes. It is a fencing token: a leader's write is accepted only
	// while the stored lease has its term and is not released.
	Term int64
	// Duration is how long a Version is valid after an instance first sees it, in whole milliseconds.
	Duration time.Duration
	// Released means that another instance may acquire the lease at once.
	Released bool
	Data     string // about the holder, for display; may be ""
}
