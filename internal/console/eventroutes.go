package console

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/internal/observe/eventlog"
)

const (
	maxShown = 1000 // events or lines in one answer
	shown    = 100  // without a limit of the caller's
	maxMatch = 200  // bytes of a filter
)

// History is what an environment keeps of what happened. Where nothing is kept its fields are nil, and their routes
// answer 409.
type History struct {
	Events *eventlog.Log
	Lines  *eventlog.Lines // the last ones of the log
}

// eventList and lineList are the answers of the two routes.
type (
	eventList struct {
		Events []eventlog.Event `json:"events"`
	}
	lineList struct {
		Lines []eventlog.Line `json:"lines"`
	}
)

// events answers with the newest events, newest first, or with ?after those that follow an id, oldest first. A
// caller that accepts an event stream gets what happens from then on, or after the id in Last-Event-ID or ?after.
func (h *History) events(r *http.Request) (any, error) {
	values := r.URL.Query()
	q := eventlog.Query{Match: values.Get("match")}
	var err error
	if q.Range, err = rangeOf(r); err != nil {
		return nil, err
	}
	if text := values.Get("kind"); text != "" {
		q.Kinds = strings.Split(text, ",")
	}
	for _, kind := range q.Kinds {
		if !slices.Contains(eventlog.Kinds(), kind) {
			return nil, refuse(http.StatusBadRequest, "there is no kind of events "+strconv.Quote(kind),
				"use one or more of "+strings.Join(eventlog.Kinds(), ","))
		}
	}
	if text := values.Get("since"); text != "" {
		if q.Since, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, refuse(http.StatusBadRequest, "since "+strconv.Quote(text)+" is no time",
				"use one such as 2026-01-02T03:04:05Z")
		}
	}
	read := func(q eventlog.Query) ([]entry, error) {
		events, err := h.Events.Read(q)
		all := make([]entry, len(events))
		for i := range events {
			all[i] = entry{events[i].ID, events[i]}
		}
		return all, err
	}
	if isStream(r) {
		return newStream(r, h.Events.Changed, func(in eventlog.Range) ([]entry, error) { q.Range = in; return read(q) },
			func(in eventlog.Range) ([]entry, error) { return read(eventlog.Query{Range: in}) })
	}
	events, err := h.Events.Read(q)
	return eventList{append([]eventlog.Event{}, events...)}, err
}

// logs is events for lines of the log.
func (h *History) logs(r *http.Request) (any, error) {
	values := r.URL.Query()
	q := eventlog.LineQuery{Process: values.Get("process"), Match: values.Get("match")}
	var err error
	if q.Range, err = rangeOf(r); err != nil {
		return nil, err
	}
	if text := values.Get("level"); text != "" && q.Level.UnmarshalText([]byte(text)) != nil {
		return nil, refuse(http.StatusBadRequest, "there is no level "+strconv.Quote(text), "use debug, info, warn or error")
	}
	read := func(q eventlog.LineQuery) ([]entry, error) {
		lines := h.Lines.Read(q)
		all := make([]entry, len(lines))
		for i := range lines {
			all[i] = entry{lines[i].ID, lines[i]}
		}
		return all, nil
	}
	if isStream(r) {
		return newStream(r, h.Lines.Changed, func(in eventlog.Range) ([]entry, error) { q.Range = in; return read(q) },
			func(in eventlog.Range) ([]entry, error) {
				return read(eventlog.LineQuery{Range: in, Level: slog.LevelDebug})
			})
	}
	return lineList{append([]eventlog.Line{}, h.Lines.Read(q)...)}, nil
}

// rangeOf reads ?after, ?before and ?limit.
func rangeOf(r *http.Request) (in eventlog.Range, err error) {
	values := r.URL.Query()
	if in.Limit, err = limitOf(r, maxShown, shown); err != nil {
		return in, err
	}
	for name, id := range map[string]*int64{"after": &in.After, "before": &in.Before} {
		if text := values.Get(name); text != "" {
			if *id, err = strconv.ParseInt(text, 10, 64); err != nil || *id < 0 {
				return in, refuse(http.StatusBadRequest, name+" "+strconv.Quote(text)+" is no id", "use an id of an answer before")
			}
		}
	}
	if len(values.Get("match")) > maxMatch {
		return in, refuse(http.StatusBadRequest, "match is longer than "+strconv.Itoa(maxMatch)+" bytes", "shorten it")
	}
	in.Newest = values.Get("after") == ""
	return in, nil
}

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

func (f *EventFilter) query() string {
	values := idQuery(f.After, f.Before, f.Limit)
	set(values, "kind", strings.Join(f.Kinds, ","))
	set(values, "match", f.Match)
	if !f.Since.IsZero() {
		values.Set("since", f.Since.UTC().Format(time.RFC3339))
	}
	return values.Encode()
}

// LineFilter selects lines of the log. The zero value is the newest 100 of level Info and above.
type LineFilter struct {
	After, Before int64  // as in [EventFilter]
	Limit         int    // as in [EventFilter]
	Process       string // "" for all; [eventlog.Own] is tendril itself
	Level         slog.Level
	Match         string // is contained in the text, in any case
}

func (f *LineFilter) query() string {
	values := idQuery(f.After, f.Before, f.Limit)
	set(values, "process", f.Process)
	set(values, "match", f.Match)
	values.Set("level", f.Level.String())
	return values.Encode()
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
