package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/observe/event"
	"tendril/internal/observe/eventlog"
)

const (
	maxShown = 1000
	shown    = 100
	maxMatch = 200
)

// History holds recorded events and log lines. If a field is nil, its routes return 409.
type History struct {
	Events  *eventlog.Log
	Lines   *eventlog.Lines
	Endings *eventlog.Endings
}

// events returns the newest events first, or with ?after the following events, oldest first. A stream continues after
// Last-Event-ID or ?after, or starts with the next event.
func (h *History) events(c *call) (any, error) {
	values := c.query
	q := eventlog.Query{Match: values.Get("match")}
	var err error
	if q.Range, err = rangeOf(c); err != nil {
		return nil, err
	}
	if text := values.Get("kind"); text != "" {
		q.Kinds = strings.Split(text, ",")
	}

	for _, kind := range q.Kinds {
		if !slices.Contains(event.Kinds(), kind) {
			return nil, api.BadRequest("unknown event kind "+strconv.Quote(kind),
				"use one or more of "+strings.Join(event.Kinds(), ","))
		}
	}

	if q.Since, err = timeOf(c, "since"); err != nil {
		return nil, err
	}
	if q.Until, err = timeOf(c, "until"); err != nil {
		return nil, err
	}

	if c.follows {
		return newStream(c, h.Events.LastID(), h.Events.Changed, func(in eventlog.Range) (all []entry, err error) {
			q.Range = in
			events, err := h.Events.Read(q)
			for i := range events {
				all = append(all, entry{events[i].ID, events[i]})
			}
			return all, err
		})
	}

	events, err := h.Events.Read(q)
	return api.EventList{Events: append([]eventlog.Event{}, events...)}, err
}

func (h *History) logs(c *call) (any, error) {
	values := c.query
	q := eventlog.LineQuery{Process: values.Get("process"), Match: values.Get("match")}
	var err error
	if q.Range, err = rangeOf(c); err != nil {
		return nil, err
	}
	if q.Until, err = timeOf(c, "until"); err != nil {
		return nil, err
	}
	if text := values.Get("level"); text != "" && q.Level.UnmarshalText([]byte(text)) != nil {
		return nil, api.BadRequest("unknown level "+strconv.Quote(text), "use debug, info, warn or error")
	}

	if c.follows {
		return newStream(c, h.Lines.LastID(), h.Lines.Changed, func(in eventlog.Range) (all []entry, err error) {
			q.Range = in
			for _, line := range h.Lines.Read(q) {
				all = append(all, entry{line.ID, line})
			}
			return all, nil
		})
	}

	return api.LineList{Lines: append([]eventlog.Line{}, h.Lines.Read(q)...)}, nil
}

func timeOf(c *call, name string) (at time.Time, err error) {
	text := c.query.Get(name)
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return at, api.BadRequest(name+" "+strconv.Quote(text)+" is not a time",
			"use a time such as 2026-01-02T03:04:05Z")
	}
	return at, nil
}

func rangeOf(c *call) (in eventlog.Range, err error) {
	values := c.query
	if in.Limit, err = limitOf(c, maxShown, shown); err != nil {
		return in, err
	}
	for name, id := range map[string]*int64{"after": &in.After, "before": &in.Before} {
		if text := values.Get(name); text != "" {
			if *id, err = strconv.ParseInt(text, 10, 64); err != nil || *id < 0 {
				return in, api.BadRequest(name+" "+strconv.Quote(text)+" is not an ID", "use an ID from an earlier answer")
			}
		}
	}
	if len(values.Get("match")) > maxMatch {
		return in, api.BadRequest("match is longer than "+strconv.Itoa(maxMatch)+" bytes", "shorten it")
	}
	in.Newest = values.Get("after") == ""
	return in, nil
}
