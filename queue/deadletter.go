package queue

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// AttributeReason is the message attribute that records why a message was dead-lettered, as a [Failure] in JSON. Apps
// never receive it.
const AttributeReason = "tendril.reason"

const (
	maxAttributes = 10
	// maxAnswer and maxReason limit the texts in a Failure, in bytes.
	maxAnswer = 1 << 10
	maxReason = 256
)

// Failure describes how the last attempt at a message failed.
type Failure struct {
	Reason string `json:"reason"`           // see [Result]; reveals no parts of the message or response
	Status int    `json:"status,omitempty"` // HTTP status; 0 without a response
	Answer string `json:"answer,omitempty"` // start of the response, at most 1 KiB
	// Attempts counts deliveries from the source queue; Receives counts all receives.
	Attempts   int       `json:"attempts,omitempty"`
	Receives   int       `json:"receives,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	FailedAt   time.Time `json:"failed_at"`
	Instance   string    `json:"instance,omitempty"` // instance that made the attempt
	// The fields below describe the message before dead-lettering. Source is the queue's ARN.
	MessageID string    `json:"message_id"`
	SentAt    time.Time `json:"sent_at,omitzero"`
	Source    string    `json:"source"`
}

// DeadLetter is a message to be dead-lettered, with its last failure.
type DeadLetter struct {
	Message *Message
	Failure Failure
}

// Outgoing returns the message for the dead-letter queue: the original with the failure in the attribute
// [AttributeReason], truncated to fit. On a FIFO queue, its deduplication ID is the message ID, as in SQS. fits is
// false if the message is too large or has 10 attributes already.
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

	out.Attributes = SortedAttributes(append(slices.Clip(out.Attributes), reason))
	return out, true
}

// text returns f in JSON, truncated to room bytes if possible.
func (f Failure) text(room int) (text string, fits bool) {
	f.Reason = sanitize(f.Reason, maxReason)
	f.Answer = sanitize(f.Answer, maxAnswer)
	for _, shorten := range []*string{&f.Answer, &f.Reason} {
		text, ok := f.encode()
		extra := len(text) - room
		if !ok || extra <= 0 {
			return text, ok
		}
		// Each byte takes at least one byte in JSON.
		*shorten = sanitize(*shorten, max(len(*shorten)-extra, 0))
	}
	text, ok := f.encode()
	return text, ok && len(text) <= room
}

// ok is false if the time has no JSON form.
func (f *Failure) encode() (text string, ok bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(f) != nil {
		return "", false
	}
	return strings.TrimSuffix(b.String(), "\n"), true
}

// sanitize truncates text to n bytes and replaces characters that SQS rejects and JSON does not escape.
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

// CutReason returns the attributes without [AttributeReason], and the failure in it; nil if missing or invalid. Any
// sender can write the attribute, so do not trust its content.
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

// Size returns the bytes that count toward [MaxMessageSize].
func (m *Outgoing) Size() int {
	n := len(m.Body)
	for _, a := range m.Attributes {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}

// IsValidUTF8 reports whether all text of the message is valid UTF-8. JSON would change other text.
func (m *Outgoing) IsValidUTF8() bool {
	valid := utf8.ValidString(m.Body) && utf8.ValidString(m.GroupID) && utf8.ValidString(m.DedupID) &&
		utf8.ValidString(m.TraceHeader)
	for _, a := range m.Attributes {
		valid = valid && utf8.ValidString(a.Name) && utf8.ValidString(a.Type) && (a.IsBinary() || utf8.ValidString(a.Value))
	}
	return valid
}
