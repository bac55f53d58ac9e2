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

const maxMatch = 200

// History holds recorded events, log lines and endings of messages; each may be nil. Without Events or Lines, their
// route returns 409.
type History struct {
	Events  *eventlog.Log
	Lines   *eventlog.Lines
	Endings *eventlog.Endings
}

func (h *History) events(c *call) (any, error) {
	q, err := eventQuery(c)
	if err != nil {
		return nil, err
	}

	if !c.follows {
		events, err := h.Events.Read(q)
		return api.EventList{Events: notNull(events)}, err
	}
	return newStream(c, h.Events.LastID(), h.Events.Changed, func(in eventlog.Range) ([]entry, error) {
		q.Range = in
		events, err := h.Events.Read(q)
		var all []entry
		for i := range events {
			all = append(all, entry{events[i].ID, events[i]})
		}
		return all, err
	})
}

func eventQuery(c *call) (q eventlog.Query, err error) {
	if text := c.query.Get("kind"); text != "" {
		q.Kinds = strings.Split(text, ",")
	}
	if q.Range, err = readRange(c); err != nil {
		return q, err
	}
	if q.Match, err = readMatch(c); err != nil {
		return q, err
	}

	for _, kind := range q.Kinds {
		if !slices.Contains(event.Kinds(), kind) {
			return q, api.BadRequest("unknown event kind "+strconv.Quote(kind),
				"use one or more of "+strings.Join(event.Kinds(), ","))
		}
	}

	if q.Since, err = readTime(c, "since"); err != nil {
		return q, err
	}
	q.Until, err = readTime(c, "until")
	return q, err
}

func (h *History) logs(c *call) (any, error) {
	q, err := lineQuery(c)
	if err != nil {
		return nil, err
	}

	if !c.follows {
		return api.LineList{Lines: notNull(h.Lines.Read(q))}, nil
	}
	return newStream(c, h.Lines.LastID(), h.Lines.Changed, func(in eventlog.Range) ([]entry, error) {
		q.Range = in
		var all []entry
		for _, line := range h.Lines.Read(q) {
			all = append(all, entry{line.ID, line})
		}
		return all, nil
	})
}

func lineQuery(c *call) (q eventlog.LineQuery, err error) {
	q.Process = c.query.Get("process")
	if q.Range, err = readRange(c); err != nil {
		return q, err
	}
	if q.Match, err = readMatch(c); err != nil {
		return q, err
	}
	if q.Until, err = readTime(c, "until"); err != nil {
		return q, err
	}
	if text := c.query.Get("level"); text != "" && q.Level.UnmarshalText([]byte(text)) != nil {
		return q, api.BadRequest("unknown level "+strconv.Quote(text), "use debug, info, warn or error")
	}
	return q, nil
}

func readTime(c *call, name string) (at time.Time, err error) {
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

func readRange(c *call) (in eventlog.Range, err error) {
	if in.Limit, err = readLimit(c, maxLimit); err != nil {
		return in, err
	}
	if in.After, err = readID(c, "after"); err != nil {
		return in, err
	}
	in.Newest = c.query.Get("after") == ""
	in.Before, err = readID(c, "before")
	return in, err
}

func readMatch(c *call) (string, error) {
	match := c.query.Get("match")
	if len(match) > maxMatch {
		return "", api.BadRequest(`"match" is longer than `+strconv.Itoa(maxMatch)+" bytes", "shorten it")
	}
	return match, nil
}

func readID(c *call, name string) (int64, error) {
	text := c.query.Get(name)
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, api.BadRequest(name+" "+strconv.Quote(text)+" is not an ID", "use an ID from an earlier response")
	}
	return id, nil
}
