package eventlog

import (
	"slices"
	"strings"
	"time"
)

// maxField is the longest value of a field, in bytes.
const maxField = 1 << 10

// Event is one thing that happened.
type Event struct {
	// ID is larger than those of all earlier events, those of earlier runs of the environment included.
	ID   int64     `json:"id"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // one of [event.Kinds]
	// Text says what happened in the same words each time. What varies is in Fields, by name; nil for nothing.
	Text   string            `json:"text"`
	Fields map[string]string `json:"fields,omitempty"`
}

// Query selects events. The zero value selects all of them, oldest first.
type Query struct {
	Range
	Kinds []string  // nil for all
	Since time.Time // not before this time; zero for no bound
	// Match is contained in the text or in the value of a field, in any case; "" for no filter.
	Match string
}

func (q *Query) matches(e *Event) bool {
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, e.Kind)) && !e.At.Before(q.Since) &&
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

// bounded returns fields whose values are not too long. It never changes those that it gets.
func bounded(fields map[string]string) map[string]string {
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
