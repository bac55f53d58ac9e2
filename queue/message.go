package queue

import (
	"strings"
	"time"
)

// MaxBatch is the largest number of entries one queue call takes (SQS: 10).
const MaxBatch = 10

// MaxVisibility is the longest time a message may stay hidden, counted from
// its receive (SQS: 12 hours).
const MaxVisibility = 12 * time.Hour

// Message is one message as one receive gave it out.
type Message struct {
	// ID is the queue's message id; it stays the same over all receives, also
	// in the dead-letter queue.
	ID string
	// Body is the text byte for byte.
	Body string
	// Attributes are the message's own attributes, sorted by name.
	Attributes []Attribute
	// ReceiptHandle names this receive. Delete and ChangeVisibility take it.
	ReceiptHandle string
	// ReceiveCount is how often the message was received, this receive
	// included: 1 the first time.
	ReceiveCount int
	// SentAt and FirstReceivedAt have millisecond precision.
	SentAt, FirstReceivedAt time.Time
	// SenderID is the sender's account or principal id; "" when unknown.
	SenderID string
	// GroupID, DedupID and SequenceNumber are set on FIFO queues. GroupID may
	// also be set on a standard queue, where it names a tenant.
	GroupID, DedupID, SequenceNumber string
	// TraceHeader is the AWSTraceHeader system attribute; "" when absent.
	TraceHeader string
	// DeadLetterSource is the ARN of the queue that the message was
	// dead-lettered from; "" for a message that never was.
	DeadLetterSource string
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

// Attribute returns the value of the attribute called name, "" when the
// message has none of that name.
func (m *Message) Attribute(name string) string {
	for i := range m.Attributes {
		if m.Attributes[i].Name == name {
			return m.Attributes[i].Value
		}
	}
	return ""
}

// Outgoing is one message on its way into a queue.
type Outgoing struct {
	Body       string
	Attributes []Attribute
	// Delay hides the new message for 0 to 15 minutes; nil means the queue's
	// own DelaySeconds.
	Delay *time.Duration
	// GroupID is required on FIFO queues; DedupID there too, unless the queue
	// has content-based deduplication.
	GroupID, DedupID string
	// TraceHeader becomes the AWSTraceHeader system attribute; "" for none.
	TraceHeader string
}

// Sent is the queue's answer to one [Outgoing].
type Sent struct {
	// ID is the message id. For a FIFO duplicate it is the first message's.
	ID string
	// SequenceNumber is set on FIFO queues.
	SequenceNumber string
	// Err is why this entry was refused; nil means accepted: the message is
	// durable.
	Err error
}

// ReceiveRequest asks for up to Max messages.
type ReceiveRequest struct {
	// Max is 1 to [MaxBatch].
	Max int
	// Wait is how long to wait for a first message, 0 to 20 s; nil means the
	// queue's own ReceiveMessageWaitTimeSeconds.
	Wait *time.Duration
	// Visibility hides what is received, 0 to [MaxVisibility]; nil means the
	// queue's own VisibilityTimeout.
	Visibility *time.Duration
	// AttemptID makes a FIFO receive repeatable for 5 minutes
	// (ReceiveRequestAttemptId); "" for none.
	AttemptID string
}

// VisibilityChange sets the remaining hidden time of one received message.
type VisibilityChange struct {
	ReceiptHandle string
	// Visibility counts from now, 0 to [MaxVisibility]; 0 makes the message
	// visible at once.
	Visibility time.Duration
	// Unread tells that nobody was handed the message: a queue that can takes the
	// receive out of the count. The embedded queue does; Amazon SQS has no way to.
	Unread bool
}
