package queue

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxVisibility is the maximum time a message stays invisible after a receive (SQS: 12 hours).
const MaxVisibility = 12 * time.Hour

// Message is a received message.
type Message struct {
	ID   string
	Body string
	// Attributes are sorted by name.
	Attributes []Attribute
	// ReceiptHandle identifies this receive.
	ReceiptHandle string
	// ReceiveCount includes this receive.
	ReceiveCount int
	// Attempt is ReceiveCount without receives in earlier queues, or 0 if unknown. In a delivery, it is at least 1, and
	// excludes receives that the worker knows did not reach the app.
	Attempt int
	// SentAt and FirstReceivedAt have millisecond precision.
	SentAt, FirstReceivedAt time.Time
	// SenderID is an account or principal ID; may be "".
	SenderID string
	// GroupID, DedupID and SequenceNumber are set on FIFO queues. On a standard queue, GroupID names a tenant.
	GroupID, DedupID, SequenceNumber string
	// TraceHeader is the AWSTraceHeader system attribute; may be "".
	TraceHeader string
	// DeadLetterSource is the ARN of the queue from which the message was dead-lettered, or "".
	DeadLetterSource string
	// Run is the message's scheduled run, or nil. It is set before the delivery.
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

// SortedAttributes returns the attributes sorted by name, in a copy unless already sorted.
func SortedAttributes(attributes []Attribute) []Attribute {
	byName := func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(attributes, byName) {
		return attributes
	}
	return slices.SortedFunc(slices.Values(attributes), byName)
}

// Attribute returns the value of the named message attribute, or "".
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
	// Delay is 0 to 15 minutes; nil means the queue's DelaySeconds.
	Delay *time.Duration
	// NotBefore keeps the message invisible until that time, even beyond 15 minutes; zero means no delay. Embedded
	// standard queues only.
	NotBefore time.Time
	// GroupID is required on FIFO queues; so is DedupID without content-based deduplication.
	GroupID, DedupID string
	// TraceHeader becomes the AWSTraceHeader system attribute; may be "".
	TraceHeader string
}

// Sent is the result of one [Outgoing].
type Sent struct {
	ID             string // ID of the first message for a FIFO duplicate
	SequenceNumber string // FIFO only
	// Err is nil once the message is durable.
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
	// CountAtPost means that the receive does not count if the process is killed before it calls Posting. Embedded
	// queue only.
	CountAtPost bool
	// AttemptID makes a FIFO receive repeatable for 5 minutes (ReceiveRequestAttemptId); may be "".
	AttemptID string
	// Room limits the memory for the messages; nil means no limit. Embedded queue only.
	Room Room
}

// ReceiveBytes is the size in bytes after which a receive with a [Room] takes no further messages.
const ReceiveBytes = 256 << 10

// Room limits the memory for the messages of one receive.
type Room interface {
	// Acquire waits for the maximum memory that a receive can need.
	Acquire(ctx context.Context) error
	// Keep releases the acquired memory beyond the messages' total size.
	Keep(bytes int64)
}

// VisibilityChange changes the visibility timeout of a received message.
type VisibilityChange struct {
	ReceiptHandle string
	// Visibility is the timeout from now, 0 to [MaxVisibility]; 0 makes the message visible at once.
	Visibility time.Duration
	// Unread means that the message was not delivered. The embedded queue then does not count the receive; SQS does.
	Unread bool
}

// ParseRedrivePolicy returns the dead-letter queue's name and maxReceiveCount of a RedrivePolicy; "" or 0 if missing.
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

// NameInARN returns the queue name in an ARN. Text without a colon is unchanged.
func NameInARN(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

// FIFOSuffix ends the name of every FIFO queue.
const FIFOSuffix = ".fifo"

// IsFIFO reports whether a name, URL or ARN belongs to a FIFO queue.
func IsFIFO(name string) bool { return strings.HasSuffix(name, FIFOSuffix) }

// DeadLetterName returns the default name or ARN of a queue's dead-letter queue.
func DeadLetterName(name string) string {
	base, isFIFO := strings.CutSuffix(name, FIFOSuffix)
	if isFIFO {
		return base + "-dead" + FIFOSuffix
	}
	return base + "-dead"
}

// Message attributes of a periodic task's run, compatible with Elastic Beanstalk's daemon.
const (
	// RunPrefix marks attributes that apps never receive.
	RunPrefix     = "beanstalk.sqsd."
	AttributePath = RunPrefix + "path" // URL path to post to; required
	AttributeTask = RunPrefix + "task_name"
	AttributeTime = RunPrefix + "scheduled_time" // UTC, as RunTimeLayout
	// AttributeRun is the ID of a manually requested run.
	AttributeRun  = RunPrefix + "run_id"
	RunTimeLayout = "2006-01-02 15:04:05 UTC"
)

// AttributeNotBefore is the message attribute that keeps a message in the embedded queue invisible until a given
// time: a String in RFC 3339 format, or a Number of seconds since 1970.
const AttributeNotBefore = "tendril.not_before"

// Run is the scheduled run that a message represents.
type Run struct {
	// Path is the URL path to post to. Any sender can set it, so it is untrusted.
	Path string
	// Time is when the run was due. ID is set only for a manually requested run. Each may be "".
	Task, Time, ID string
	// ScheduledAt is Time, in whole seconds; zero if Time is not in [RunTimeLayout].
	ScheduledAt time.Time
}

// Named reports whether the run's task and time are known.
func (r *Run) Named() bool { return r != nil && r.Task != "" && !r.ScheduledAt.IsZero() }

// ParseRun returns the message's scheduled run, or nil without a path attribute of a text type.
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

	return new(r) // allocates only for a run
}

// IsText reports whether the type is String or Number, with or without a label.
func (a *Attribute) IsText() bool {
	return strings.HasPrefix(a.Type, "String") || strings.HasPrefix(a.Type, "Number")
}

// TaskTimes are the times that the registry stores for a periodic task.
type TaskTimes struct {
	// UpTo is the time up to which runs were enqueued or skipped.
	UpTo time.Time
	// From is the earliest time at which an instance had the task with its schedule; zero if unknown.
	From time.Time
}

// Lease is the record by which instances agree on the leader. The zero value was never written.
//
// It contains no time of day: to detect expiry, an instance measures with its own clock whether Version changes
// within Duration.
type Lease struct {
	Owner string // for display
	// Version is unique to each write; "" only in the zero value.
	Version string
	// Term increases by one with each new holder. It is a fencing token: writes of an earlier term are rejected.
	Term int64
	// Duration is how long a Version is valid after an instance first reads it, in whole milliseconds.
	Duration time.Duration
	// Released lets another instance acquire the lease at once.
	Released bool
	Data     string // about the holder, for display
}
