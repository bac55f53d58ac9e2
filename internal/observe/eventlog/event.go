package eventlog

import (
	"slices"
	"strings"
	"time"
)

const maxField = 1 << 10

// Event is a stored event.
type Event struct {
	ID     int64             `json:"id"`
	At     time.Time         `json:"at"`
	Kind   string            `json:"kind"` // see [event.Kinds]
	Text   string            `json:"text"`
	Fields map[string]string `json:"fields,omitempty"`
	// Instance is "" in the log.
	Instance string `json:"instance,omitempty"`
}

// Query selects events. The zero value selects all, oldest first.
type Query struct {
	Range
	Kinds []string
	Since time.Time
	Until time.Time // exclusive; zero for no limit
	// Match is a substring of the text or of a field's value, ignoring case.
	Match string
}

func (q *Query) matches(e *Event) bool {
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, e.Kind)) && !e.At.Before(q.Since) &&
		(q.Until.IsZero() || e.At.Before(q.Until)) &&
		(q.Match == "" || e.contains(strings.ToLower(q.Match)))
}

func (e *Event) contains(lower string) bool {
	if strings.Contains(strings.ToLower(e.Text), lower) {
		return true
	}
	for _, value := range e.Fields {
		if strings.Contains(strings.ToLower(value), lower) {
			return true
		}
	}
	return false
}

func boundedFields(fields map[string]string) map[string]string {
	if len(fields) == 0 {
		return nil
	}
	short := make(map[string]string, len(fields))
	for name, value := range fields {
		if len(value) > maxField {
			value = strings.ToValidUTF8(value[:maxField], "") + "..."
		}
		short[name] = value
	}
	return short
}
