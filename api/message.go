package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

// The states of a message, as [Message] names them.
const (
	MessageVisible  = "visible"
	MessageDelayed  = "delayed"
	MessageInFlight = "in_flight"
	MessageDamaged  = "damaged"
)

// Message is a message as it lies in a queue. It is also one line of an
// export, so that what was exported can be sent again.
type Message struct {
	ID    string `json:"id,omitempty"`
	Queue string `json:"queue,omitempty"` // the name of the queue that holds it
	// State is one of the Message constants; "" when it was received to be
	// looked at.
	State string `json:"state,omitempty"`
	// Body is the text byte for byte.
	Body string `json:"body"`
	// BodyHidden is whether Body, Attributes and answers are left out since bodies are shown on request only.
	BodyHidden   bool       `json:"body_hidden,omitempty"`
	Attributes   Attributes `json:"attributes,omitempty"`
	ReceiveCount int        `json:"receive_count,omitempty"` // over all queues
	// SentAt, FirstReceivedAt, VisibleAt and DeadAt are zero when unknown or
	// not yet; VisibleAt is set for a delayed or in-flight message.
	SentAt          time.Time `json:"sent_at,omitzero"`
	FirstReceivedAt time.Time `json:"first_received_at,omitzero"`
	VisibleAt       time.Time `json:"visible_at,omitzero"`
	DeadAt          time.Time `json:"dead_at,omitzero"`
	// DeadLetterSource is the ARN of the queue that it was dead-lettered from.
	DeadLetterSource string `json:"dead_letter_source,omitempty"`
	// GroupID, DedupID and SequenceNumber are those of FIFO queues; GroupID may
	// be set on a standard queue too.
	GroupID        string `json:"group_id,omitempty"`
	DedupID        string `json:"dedup_id,omitempty"`
	SequenceNumber string `json:"sequence_number,omitempty"`
	// SenderID is the sender's account or principal; TraceHeader the
	// AWSTraceHeader.
	SenderID    string `json:"sender_id,omitempty"`
	TraceHeader string `json:"trace_header,omitempty"`
	// Attempts are the last failed deliveries, the oldest first; an embedded queue keeps them with the message.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Attempt is one failed delivery of a message, as its queue keeps it.
type Attempt struct {
	At       time.Time `json:"at"` // when it ended
	Instance string    `json:"instance,omitempty"`
	Outcome  string    `json:"outcome"`          // as in [Delivery]
	Status   int       `json:"status,omitempty"` // of HTTP; 0 without an answer
	Reason   string    `json:"reason,omitempty"` // in a few words
	Answer   string    `json:"answer,omitempty"` // the begin of it
	// DurationMS is how long the app took, in milliseconds.
	DurationMS   int64     `json:"duration_ms"`
	ReceiveCount int       `json:"receive_count,omitempty"`
	RetryAt      time.Time `json:"retry_at,omitzero"` // when the message became visible again, where that is known
}

// ReasonGroup is the messages of a queue whose last attempts failed alike: see [broker.ReasonGroup].
type ReasonGroup struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	// First and Last are when the oldest and the newest message was dead-lettered or failed last; zero when unknown.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Hours counts the messages of the last 24 hours by that, this hour last.
	Hours [24]int `json:"hours"`
}

// ReasonList is the answer of /api/v1/queues/{name}/reasons.
type ReasonList struct {
	Reasons []ReasonGroup `json:"reasons"`
}

// Attributes are message attributes that read in JSON as an object by name:
// a string for a String, {"type": "Number", "value": "3"} for other text,
// {"type": "Binary", "base64": "..."} for bytes.
type Attributes []queue.Attribute

// attributeJSON is the long form of one attribute.
type attributeJSON struct {
	Type   string  `json:"type"`
	Value  *string `json:"value,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

// MarshalJSON writes the object, sorted by name.
func (as Attributes) MarshalJSON() ([]byte, error) {
	byName := make(map[string]any, len(as))
	for _, a := range as {
		switch {
		case a.Type == "String":
			byName[a.Name] = a.Value
		case a.IsBinary():
			text := base64.StdEncoding.EncodeToString([]byte(a.Value))
			byName[a.Name] = attributeJSON{Type: a.Type, Base64: &text}
		default:
			byName[a.Name] = attributeJSON{Type: a.Type, Value: &a.Value}
		}
	}
	return json.Marshal(byName)
}

// UnmarshalJSON reads what MarshalJSON writes, and a bare JSON number as a
// Number. The result is sorted by name. It refuses everything else, naming the
// attribute.
func (as *Attributes) UnmarshalJSON(data []byte) error {
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(data, &byName); err != nil {
		return fmt.Errorf("attributes must be an object by name: %w", err)
	}
	*as = nil
	for name, raw := range byName {
		a, err := parseAttribute(name, raw)
		if err != nil {
			return err
		}
		*as = append(*as, a)
	}
	slices.SortFunc(*as, func(a, b queue.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func parseAttribute(name string, raw json.RawMessage) (queue.Attribute, error) {
	refuse := func(why string) (queue.Attribute, error) {
		return queue.Attribute{},
			fmt.Errorf(`attribute %q %s; write "text", 3, {"type":"Number","value":"3"} or {"type":"Binary","base64":"AAE="}`,
				name, why)
	}
	switch raw[0] {
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return queue.Attribute{Name: name, Type: "String", Value: text}, err
	case '{':
		var long attributeJSON
		if err := json.Unmarshal(raw, &long); err != nil {
			return refuse("is not understood")
		}
		a := queue.Attribute{Name: name, Type: long.Type}
		switch {
		case long.Type == "":
			return refuse("has no type")
		case a.IsBinary() && long.Base64 != nil && long.Value == nil:
			data, err := base64.StdEncoding.DecodeString(*long.Base64)
			if err != nil {
				return refuse("has a base64 value that does not decode")
			}
			a.Value = string(data)
		case !a.IsBinary() && long.Value != nil && long.Base64 == nil:
			a.Value = *long.Value
		default:
			return refuse("needs a value, or base64 when its type is Binary")
		}
		return a, nil
	case 't', 'f', 'n', '[':
		return refuse("is neither text nor number")
	default:
		return queue.Attribute{Name: name, Type: "Number", Value: string(raw)}, nil
	}
}

// FromMessage turns a received message into what the console shows.
func FromMessage(m *queue.Message, queueName string) Message {
	return Message{
		ID: m.ID, Queue: queueName, Body: m.Body, Attributes: Attributes(m.Attributes),
		ReceiveCount: m.ReceiveCount, SentAt: m.SentAt, FirstReceivedAt: m.FirstReceivedAt,
		DeadLetterSource: m.DeadLetterSource, GroupID: m.GroupID, DedupID: m.DedupID,
		SequenceNumber: m.SequenceNumber, SenderID: m.SenderID, TraceHeader: m.TraceHeader,
	}
}

// Outgoing is a message on its way into a queue, in the words of [Message].
type Outgoing struct {
	Body       string     `json:"body"`
	Attributes Attributes `json:"attributes,omitempty"`
	// DelaySeconds hides the message for 0 to 900 s; nil means the queue's own
	// delay.
	DelaySeconds *int `json:"delay_seconds,omitempty"`
	// NotBefore hides it until then, however long that is; zero for no such time. FIFO queues refuse it.
	NotBefore time.Time `json:"not_before,omitzero"`
	// GroupID and DedupID are as in [Message]; TraceHeader becomes the AWSTraceHeader.
	GroupID     string `json:"group_id,omitempty"`
	DedupID     string `json:"dedup_id,omitempty"`
	TraceHeader string `json:"trace_header,omitempty"`
}

// ToQueue returns the message in the words of package queue.
func (o *Outgoing) ToQueue() queue.Outgoing {
	out := queue.Outgoing{Body: o.Body, Attributes: o.Attributes, GroupID: o.GroupID, DedupID: o.DedupID,
		TraceHeader: o.TraceHeader, NotBefore: o.NotBefore}
	if o.DelaySeconds != nil {
		delay := time.Duration(*o.DelaySeconds) * time.Second
		out.Delay = &delay
	}
	return out
}

// fromQueue is the opposite of ToQueue; a delay is rounded up to whole seconds.
func fromQueue(o *queue.Outgoing) Outgoing {
	out := Outgoing{Body: o.Body, Attributes: o.Attributes, GroupID: o.GroupID, DedupID: o.DedupID,
		TraceHeader: o.TraceHeader, NotBefore: o.NotBefore}
	if o.Delay != nil {
		seconds := int((*o.Delay + time.Second - 1) / time.Second)
		out.DelaySeconds = &seconds
	}
	return out
}

type (
	// SendRequest is the body of a send. Its answer has one result for each message, in order.
	SendRequest struct {
		Messages []Outgoing `json:"messages"`
	}
	// SendAnswer has one result for each message of a send, in order.
	SendAnswer struct {
		Results []SendResult `json:"results"`
	}
	// SendResult is what became of one message of a send.
	SendResult struct {
		ID             string `json:"id,omitempty"`
		SequenceNumber string `json:"sequence_number,omitempty"`
		Error          string `json:"error,omitempty"`
		Code           string `json:"code,omitempty"`
	}
)

// MessagePage is one page of the messages of a queue.
type MessagePage struct {
	Messages []Message `json:"messages"`
	// Next is the value of after for the next page; "" at the end. A page may
	// hold fewer messages than its limit and still have a next one.
	Next string `json:"next,omitempty"`
}
