package queue

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// AttributeReason is the message attribute that says why tendril dead-lettered a message: a [Failure] in JSON. An app
// is never sent it.
const AttributeReason = "tendril.reason"

const (
	// maxAttributes is the most message attributes that SQS takes.
	maxAttributes = 10
	// maxAnswer and maxReason bound two texts of a failure, in bytes.
	maxAnswer = 1 << 10
	maxReason = 256
)

// Failure is how the last attempt at a message failed.
type Failure struct {
	Reason string `json:"reason"`           // in a few words, as [Result] has it
	Status int    `json:"status,omitempty"` // of HTTP; 0 without an answer
	Answer string `json:"answer,omitempty"` // the start of the answer, at most 1 KiB
	// Attempts is how often the message was tried, Receives how often it was received.
	Attempts   int       `json:"attempts,omitempty"`
	Receives   int       `json:"receives,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	FailedAt   time.Time `json:"failed_at"`
	Instance   string    `json:"instance,omitempty"` // where it was tried
	// MessageID, SentAt and Source are what the message had before it was dead-lettered: its id, when it was sent, and
	// the ARN of its queue.
	MessageID string    `json:"message_id"`
	SentAt    time.Time `json:"sent_at,omitzero"`
	Source    string    `json:"source"`
}

// DeadLetter is a message that failed for the last time, with its last failure.
type DeadLetter struct {
	Message *Message
	Failure Failure
}

// Outgoing returns the message as it is sent to the dead-letter queue: with the same body, attributes, group and trace
// header, and with the attribute [AttributeReason]. Its deduplication id on a FIFO queue is the message's id, which is
// what SQS gives a message that it dead-letters itself. The answer, and then the reason, is cut where the message would
// be too large. It returns false where the attribute has no room: nothing of the message itself is left out.
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

// text returns the failure in JSON of at most room bytes; false when it cannot be that short.
func (f Failure) text(room int) (text string, fits bool) {
	f.Reason, f.Answer = permitted(f.Reason, maxReason), permitted(f.Answer, maxAnswer)
	for _, shorten := range []*string{&f.Answer, &f.Reason, nil} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(f) != nil { // a time that JSON cannot have
			return "", false
		}

		text = strings.TrimSuffix(b.String(), "\n")
		extra := len(text) - room
		if extra <= 0 {
			return text, true
		}

		if shorten != nil { // each byte that is left out is one in JSON, or more
			*shorten = permitted(*shorten, max(len(*shorten)-extra, 0))
		}
	}
	return "", false
}

// permitted returns the start of a text, of at most n bytes, without what SQS refuses and JSON does not escape.
func permitted(text string, n int) string {
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

// CutReason returns the attributes without [AttributeReason], and the failure that it tells of; nil where there is none
// to be read. Whoever may send to the queue may have written it.
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

// Size is what the message counts towards [MaxMessageSize].
func (m *Outgoing) Size() int {
	n := len(m.Body)
	for _, a := range m.Attributes {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}
