package queue

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// AttributeReason is the message attribute that holds why a message was dead-lettered: a [Failure] in JSON. It is
// never sent to apps.
const AttributeReason = "tendril.reason"

const (
	// SQS allows this many attributes.
	maxAttributes = 10
	// In bytes, of the texts in a Failure.
	maxAnswer = 1 << 10
	maxReason = 256
)

// Failure describes how the last attempt at a message failed.
type Failure struct {
	Reason string `json:"reason"`           // see [Result]; without parts of the message or response
	Status int    `json:"status,omitempty"` // of HTTP; 0 without a response
	Answer string `json:"answer,omitempty"` // start of the response, at most 1 KiB
	// Attempts counts deliveries, Receives also receives without a delivery.
	Attempts   int       `json:"attempts,omitempty"`
	Receives   int       `json:"receives,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	FailedAt   time.Time `json:"failed_at"`
	Instance   string    `json:"instance,omitempty"` // that made the attempt
	// These describe the message before it was dead-lettered; Source is the queue's ARN.
	MessageID string    `json:"message_id"`
	SentAt    time.Time `json:"sent_at,omitzero"`
	Source    string    `json:"source"`
}

// DeadLetter is a message that failed for the last time.
type DeadLetter struct {
	Message *Message
	Failure Failure
}

// Outgoing returns the message to send to the dead-letter queue: the original with the attribute [AttributeReason].
// On a FIFO queue its deduplication ID is the message ID, as when SQS dead-letters a message. If the message would
// become too large, the answer and then the reason are truncated; the original is never truncated. Outgoing returns
// false if even the shortest attribute does not fit.
func (d *DeadLetter) Outgoing(fifo bool) (out Outgoing, fits bool) {
	m := d.Message
	out = Outgoing{Body: m.Body, GroupID: m.GroupID, TraceHeader: m.TraceHeader}
	out.Attributes, _ = CutReason(m.Attributes)
	if fifo {
		out.DedupID = m.ID
	}

	if len(out.Attributes) >= maxAttributes {
		return out, false
	}

	reason := Attribute{Name: AttributeReason, Type: "String"}
	room := MaxMessageSize - out.Size() - len(reason.Name) - len(reason.Type)
	if reason.Value, fits = d.Failure.text(room); !fits {
		return out, false
	}

	out.Attributes = append(slices.Clip(out.Attributes), reason)
	slices.SortFunc(out.Attributes, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	return out, true
}

// The JSON has at most room bytes.
func (f Failure) text(room int) (text string, fits bool) {
	f.Reason, f.Answer = sanitize(f.Reason, maxReason), sanitize(f.Answer, maxAnswer)
	for _, shorten := range []*string{&f.Answer, &f.Reason, nil} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(f) != nil { // the failure has a time that JSON cannot represent
			return "", false
		}

		text = strings.TrimSuffix(b.String(), "\n")
		extra := len(text) - room
		if extra <= 0 {
			return text, true
		}

		if shorten != nil { // by the excess: each byte takes at least one byte in JSON
			*shorten = sanitize(*shorten, max(len(*shorten)-extra, 0))
		}
	}
	return "", false
}

// SQS rejects some characters that JSON does not escape.
func sanitize(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r == '\ufffe' || r == '\uffff' {
			return utf8.RuneError
		}
		return r
	}, text)
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "")
	}
	return text
}

// CutReason returns the attributes without [AttributeReason], and the failure that attribute holds, or nil if it is
// absent or unreadable. The content is not trustworthy: any sender can write the attribute.
func CutReason(attributes []Attribute) (others []Attribute, f *Failure) {
	i := slices.IndexFunc(attributes, func(a Attribute) bool { return a.Name == AttributeReason })
	if i < 0 {
		return attributes, nil
	}
	others = slices.Concat(attributes[:i], attributes[i+1:])
	found := &Failure{}
	if a := &attributes[i]; !a.IsText() || json.Unmarshal([]byte(a.Value), found) != nil {
		return others, nil
	}
	return others, found
}

// Size returns the size of the message that counts towards [MaxMessageSize].
func (m *Outgoing) Size() int {
	n := len(m.Body)
	for _, a := range m.Attributes {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}
