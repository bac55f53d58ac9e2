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
	// EventList is the answer of /api/v1/events.
	EventList struct {
		Events []eventlog.Event `json:"events"`
	}
	// LineList is the answer of /api/v1/logs.
	LineList struct {
		Lines []eventlog.Line `json:"lines"`
	}
)

// EventFilter selects events. The zero value is the newest 100.
type EventFilter struct {
	// After gives what follows an id, oldest first; 0 gives the newest, newest first. Before bounds the ids for a page
	// of older ones; 0 is no bound.
	After, Before int64
	Limit         int // 1 to 1000; 0 means 100
	Kinds         []string
	Since         time.Time // zero for no bound
	Match         string    // is contained in the text or a field, in any case
}

func (f *EventFilter) query() url.Values {
	values := idQuery(f.After, f.Before, f.Limit)
	set(values, "kind", strings.Join(f.Kinds, ","))
	set(values, "match", f.Match)
	if !f.Since.IsZero() {
		values.Set("since", f.Since.UTC().Format(time.RFC3339))
	}
	return values
}

// LineFilter selects lines of the log. The zero value is the newest 100 of level Info and above.
type LineFilter struct {
	After, Before int64  // as in [EventFilter]
	Limit         int    // as in [EventFilter]
	Process       string // "" for all; [eventlog.Own] is tendril itself
	Level         slog.Level
	Match         string // is contained in the text, in any case
}

func (f *LineFilter) query() url.Values {
	values := idQuery(f.After, f.Before, f.Limit)
	set(values, "process", f.Process)
	set(values, "match", f.Match)
	values.Set("level", f.Level.String())
	return values
}

func idQuery(after, before int64, limit int) url.Values {
	values := url.Values{}
	for name, n := range map[string]int64{"after": after, "before": before, "limit": int64(limit)} {
		if n > 0 {
			values.Set(name, strconv.FormatInt(n, 10))
		}
	}
	return values
}

func set(values url.Values, name, text string) {
	if text != "" {
		values.Set(name, text)
	}
}
