package web

import (
	"context"
	"strings"

	"tendril/api"
	"tendril/internal/observe/event"
	"tendril/internal/observe/eventlog"
)

var eventScreens = []screen{{path: "/events", entry: "Events", view: "events", load: (*visit).loadEvents, fleet: true}}

type eventsPage struct {
	Kinds       []choice
	Kind, Match string
	Events      []eventRow
	First, Next string
}

type eventRow struct {
	eventlog.Event
	Sentence string
	Rest     map[string]string
}

func eventRows(events []eventlog.Event) (rows []eventRow) {
	for _, e := range eventlog.OnePerAction(events) {
		row := eventRow{Event: e}
		row.Sentence, row.Rest = e.Sentence()
		rows = append(rows, row)
	}
	return rows
}

func (v *visit) loadEvents() (any, error) {
	page := &eventsPage{Kind: v.query("kind"), Match: v.query("match"),
		Kinds: v.choices("kind", "All", event.Kinds(), capital)}
	at, err := v.position()
	if err != nil {
		return nil, err
	}

	filter := api.EventFilter{Before: at.before, Until: at.until, Limit: pageSize + 1, Match: page.Match,
		Kinds: event.DefaultKinds()}
	if page.Kind != "" {
		filter.Kinds = []string{page.Kind}
	}
	events, err := v.newestEvents(filter)
	events, page.First, page.Next = onePage(v, events, func(e *eventlog.Event) string { return v.positionOf(e.ID, e.At) })
	page.Events = eventRows(events)
	return page, err
}

func (v *visit) newestEvents(filter api.EventFilter) ([]eventlog.Event, error) {
	answers, err := fromEach(v, func(ctx context.Context, c *api.Client) ([]eventlog.Event, error) { return c.Events(ctx, filter) })
	return api.NewestEvents(answers, filter.Limit), err
}

func (v *visit) choices(name, all string, values []string, label func(string) string) []choice {
	list := []choice{{Label: all, Path: v.pathWith(name, ""), Chosen: v.query(name) == ""}}
	for _, value := range values {
		list = append(list, choice{Label: label(value), Path: v.pathWith(name, value), Chosen: v.query(name) == value})
	}
	return list
}

func capital(word string) string {
	return strings.ToUpper(word[:1]) + strings.ReplaceAll(word[1:], "-", " ")
}

// onePage expects an extra row if there is a next page.
func onePage[E any](v *visit, rows []E, position func(*E) string) (shown []E, first, next string) {
	after := ""
	if len(rows) > pageSize {
		rows = rows[:pageSize]
		after = position(&rows[pageSize-1])
	}
	first, next = v.pageLinks(after)
	return rows, first, next
}

func (v *visit) pageLinks(after string) (first, next string) {
	if v.query("after") != "" {
		first = v.pathWith("after", "")
	}
	if after != "" {
		next = v.pathWith("after", after)
	}
	return first, next
}
