package api

import (
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tendril/internal/observe/eventlog"
)

type (
	// EventList is the response to GET /api/v1/events.
	EventList struct {
		Events []eventlog.Event `json:"events"`
	}
	// LineList is the response to GET /api/v1/logs.
	LineList struct {
		Lines []eventlog.Line `json:"lines"`
	}
)

// EventFilter selects events. The zero value selects the newest 100.
type EventFilter struct {
	// After selects higher IDs, oldest first; without it, the newest come first. Before selects lower IDs. In both, 0
	// means no bound.
	After, Before int64
	Limit         int // 1 to 1000; 0 means 100
	Kinds         []string
	Since, Until  time.Time // zero for no bound; Until is exclusive
	Match         string    // substring of the text or a field, ignoring case
}

func (f *EventFilter) query() url.Values {
	values := limitQuery(f.Limit)
	setNumber(values, "after", f.After)
	setNumber(values, "before", f.Before)
	set(values, "kind", strings.Join(f.Kinds, ","))
	set(values, "match", f.Match)
	setTime(values, "since", f.Since)
	setTime(values, "until", f.Until)
	return values
}

// LineFilter selects log lines. The zero value selects the newest 100 of level Info and above.
type LineFilter struct {
	After, Before int64 // as in [EventFilter]
	Limit         int
	Process       string // "" for all; [eventlog.Own] for tendril
	Level         slog.Level
	Until         time.Time // exclusive; zero for no bound
	Match         string    // substring of the text, ignoring case
}

func (f *LineFilter) query() url.Values {
	values := limitQuery(f.Limit)
	setNumber(values, "after", f.After)
	setNumber(values, "before", f.Before)
	set(values, "process", f.Process)
	set(values, "match", f.Match)
	setTime(values, "until", f.Until)
	values.Set("level", f.Level.String())
	return values
}

func limitQuery(limit int) url.Values {
	values := url.Values{}
	setNumber(values, "limit", int64(limit))
	return values
}

func setNumber(values url.Values, name string, n int64) {
	if n != 0 {
		values.Set(name, strconv.FormatInt(n, 10))
	}
}

func setTime(values url.Values, name string, at time.Time) {
	if !at.IsZero() {
		values.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
}

func set(values url.Values, name, text string) {
	if text != "" {
		values.Set(name, text)
	}
}
