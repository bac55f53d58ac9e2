package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tendril/queue"
)

// States of a [Message].
const (
	MessageVisible  = "visible"
	MessageDelayed  = "delayed"
	MessageInFlight = "in_flight"
	MessageDamaged  = "damaged"
)

// Message is a message in a queue, or a line of an export, which can be sent again.
type Message struct {
	ID    string `json:"id,omitempty"`
	Queue string `json:"queue,omitempty"`
	// State is "" for a received message.
	State string `json:"state,omitempty"`
	Body  string `json:"body"`
	// BodyHidden means that Body, Attributes and responses were not requested.
	BodyHidden   bool       `json:"body_hidden,omitempty"`
	Attributes   Attributes `json:"attributes,omitempty"`
	ReceiveCount int        `json:"receive_count,omitempty"` // in all queues
	// VisibleAt is set for delayed and in-flight messages. SentAt of a scheduled message is when it becomes visible.
	// Zero times are unknown or not applicable.
	SentAt          time.Time `json:"sent_at,omitzero"`
	FirstReceivedAt time.Time `json:"first_received_at,omitzero"`
	VisibleAt       time.Time `json:"visible_at,omitzero"`
	DeadAt          time.Time `json:"dead_at,omitzero"`
	// DeadLetterSource is the ARN of the queue from which the message was dead-lettered, or "".
	DeadLetterSource string `json:"dead_letter_source,omitempty"`
	// DedupID and SequenceNumber are set only in FIFO queues, GroupID also in standard queues.
	GroupID        string `json:"group_id,omitempty"`
	DedupID        string `json:"dedup_id,omitempty"`
	SequenceNumber string `json:"sequence_number,omitempty"`
	SenderID       string `json:"sender_id,omitempty"`
	TraceHeader    string `json:"trace_header,omitempty"`
	// Attempts are the last failed deliveries, oldest first, in embedded queues only.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// StateText returns a message state in words, such as "in flight".
func StateText(state string) string {
	if state == MessageVisible {
		return "waiting"
	}
	return strings.ReplaceAll(state, "_", " ")
}

// StateText returns the message's state in words, "dead" for a dead letter that is not in flight or delayed.
func (m *Message) StateText() string {
	if m.State == MessageVisible && !m.DeadAt.IsZero() {
		return "dead"
	}
	return StateText(m.State)
}

// Scheduled reports whether the message counts as sent only when it becomes visible; see [Outgoing].NotBefore.
func (m *Message) Scheduled() bool {
	return m.State == MessageDelayed && m.SentAt.After(time.Now())
}

// Attempt is a failed delivery, stored with the message.
type Attempt struct {
	At           time.Time `json:"at"`
	Instance     string    `json:"instance,omitempty"`
	Outcome      string    `json:"outcome"`          // as in [Delivery]
	Status       int       `json:"status,omitempty"` // 0 without a response
	Reason       string    `json:"reason,omitempty"`
	Answer       string    `json:"answer,omitempty"` // start of the app's response
	DurationMS   int64     `json:"duration_ms"`
	ReceiveCount int       `json:"receive_count,omitempty"`
	RetryAt      time.Time `json:"retry_at,omitzero"` // when the message becomes visible again; zero if unknown
}

// Summary returns the reason and the answer's first line.
func (a *Attempt) Summary() string {
	line, _, _ := strings.Cut(strings.TrimSpace(a.Answer), "\n")
	return strings.TrimSpace(a.Reason + " " + line)
}

// ReasonGroup groups a queue's messages by the reason of their last failure.
type ReasonGroup = queue.ReasonGroup

// ReasonList is the response to GET /api/v1/queues/{name}/reasons.
type ReasonList struct {
	Reasons []ReasonGroup `json:"reasons"`
}

// Attributes are message attributes, encoded in JSON as an object by name: a string for a String, {"type": "Number",
// "value": "3"} for other text, {"type": "Binary", "base64": "..."} for bytes.
type Attributes []queue.Attribute

type attributeJSON struct {
	Type   string  `json:"type"`
	Value  *string `json:"value,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

// MarshalJSON sorts the attributes by name.
func (as Attributes) MarshalJSON() ([]byte, error) {
	byName := make(map[string]any, len(as))
	for _, a := range as {
		switch {
		case a.Type == "String":
			byName[a.Name] = a.Value
		case a.IsBinary():
			byName[a.Name] = attributeJSON{Type: a.Type, Base64: new(base64.StdEncoding.EncodeToString([]byte(a.Value)))}
		default:
			byName[a.Name] = attributeJSON{Type: a.Type, Value: &a.Value}
		}
	}
	return json.Marshal(byName)
}

// UnmarshalJSON also accepts a bare JSON number as a Number, and sorts the attributes by name.
func (as *Attributes) UnmarshalJSON(data []byte) error {
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(data, &byName); err != nil {
		return fmt.Errorf("attributes must be an object with attribute names as keys: %w", err)
	}
	*as = nil
	for name, raw := range byName {
		a, err := parseAttribute(name, raw)
		if err != nil {
			return err
		}
		*as = append(*as, a)
	}
	*as = queue.SortedAttributes(*as)
	return nil
}

func parseAttribute(name string, raw json.RawMessage) (queue.Attribute, error) {
	switch raw[0] {
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return queue.Attribute{Name: name, Type: "String", Value: text}, err
	case '{':
		return parseTypedAttribute(name, raw)
	case 't', 'f', 'n', '[':
		return refuseAttribute(name, "is neither text nor number")
	}
	return queue.Attribute{Name: name, Type: "Number", Value: string(raw)}, nil
}

func parseTypedAttribute(name string, raw json.RawMessage) (queue.Attribute, error) {
	var typed attributeJSON
	if err := json.Unmarshal(raw, &typed); err != nil {
		return refuseAttribute(name, "is invalid")
	}

	a := queue.Attribute{Name: name, Type: typed.Type}
	switch {
	case typed.Type == "":
		return refuseAttribute(name, "has no type")
	case a.IsBinary() && typed.Base64 != nil && typed.Value == nil:
		data, err := base64.StdEncoding.DecodeString(*typed.Base64)
		if err != nil {
			return refuseAttribute(name, "has a base64 value that does not decode")
		}
		a.Value = string(data)
	case !a.IsBinary() && typed.Value != nil && typed.Base64 == nil:
		a.Value = *typed.Value
	default:
		return refuseAttribute(name, "needs a value, or base64 when its type is Binary")
	}

	return a, nil
}

func refuseAttribute(name, why string) (queue.Attribute, error) {
	return queue.Attribute{},
		fmt.Errorf(`attribute %q %s; write "text", 3, {"type":"Number","value":"3"} or {"type":"Binary","base64":"AAE="}`,
			name, why)
}

// FromMessage converts a received message.
func FromMessage(m *queue.Message, queueName string) Message {
	return Message{
		ID: m.ID, Queue: queueName, Body: m.Body, Attributes: Attributes(m.Attributes),
		ReceiveCount: m.ReceiveCount, SentAt: m.SentAt, FirstReceivedAt: m.FirstReceivedAt,
		DeadLetterSource: m.DeadLetterSource, GroupID: m.GroupID, DedupID: m.DedupID,
		SequenceNumber: m.SequenceNumber, SenderID: m.SenderID, TraceHeader: m.TraceHeader,
	}
}

// Outgoing is a message to send.
type Outgoing struct {
	Body         string     `json:"body"`
	Attributes   Attributes `json:"attributes,omitempty"`
	DelaySeconds *int       `json:"delay_seconds,omitempty"` // 0 to 900; nil means the queue's default
	// NotBefore hides the message until that time, even beyond 15 minutes. FIFO queues reject it.
	NotBefore   time.Time `json:"not_before,omitzero"`
	GroupID     string    `json:"group_id,omitempty"`
	DedupID     string    `json:"dedup_id,omitempty"`
	TraceHeader string    `json:"trace_header,omitempty"`
}

// ToQueue converts to package queue's type.
func (o *Outgoing) ToQueue() queue.Outgoing {
	out := queue.Outgoing{Body: o.Body, Attributes: o.Attributes, GroupID: o.GroupID, DedupID: o.DedupID,
		TraceHeader: o.TraceHeader, NotBefore: o.NotBefore}
	if o.DelaySeconds != nil {
		out.Delay = new(time.Duration(*o.DelaySeconds) * time.Second)
	}
	return out
}

func fromQueue(o *queue.Outgoing) Outgoing {
	out := Outgoing{Body: o.Body, Attributes: o.Attributes, GroupID: o.GroupID, DedupID: o.DedupID,
		TraceHeader: o.TraceHeader, NotBefore: o.NotBefore}
	if o.Delay != nil {
		out.DelaySeconds = new(int((*o.Delay + time.Second - 1) / time.Second))
	}
	return out
}

type (
	// SendRequest is the request body of [Client.Send].
	SendRequest struct {
		Messages []Outgoing `json:"messages"`
	}
	// SendAnswer is the response to a [SendRequest], with the results in order.
	SendAnswer struct {
		Results []SendResult `json:"results"`
	}
	// SendResult is one message's result.
	SendResult struct {
		ID             string `json:"id,omitempty"`
		SequenceNumber string `json:"sequence_number,omitempty"`
		Error          string `json:"error,omitempty"`
		Code           string `json:"code,omitempty"`
	}
)

// MessagePage is a page of a queue's messages.
type MessagePage struct {
	Messages []Message `json:"messages"`
	// Next is the cursor of the next page, or "".
	Next string `json:"next,omitempty"`
}
