package web

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"tendril/api"
	"tendril/internal/observe/eventlog"
)

var logScreens = []screen{{path: "/logs", entry: "Logs", view: "logs", load: (*visit).loadLogs, fleet: true}}

type logsPage struct {
	Processes, Levels     []choice
	Process, Level, Match string
	Lines                 []eventlog.Line
	First, Next           string
}

func (v *visit) loadLogs() (any, error) {
	page := &logsPage{Process: v.query("process"), Level: v.query("level"), Match: v.query("match"),
		Levels: v.choices("level", "All levels", []string{"warn", "error"}, capital)}

	processes, err := v.appProcesses()
	if err != nil {
		return nil, err
	}
	processes = slices.DeleteFunc(processes, func(name string) bool { return name == eventlog.Own })
	names := append([]string{eventlog.Own}, processes...)
	if page.Process != "" && !slices.Contains(names, page.Process) {
		names = append(names, page.Process)
	}
	page.Processes = v.choices("process", "All processes", names, strings.Clone)

	at, err := v.position()
	if err != nil {
		return nil, err
	}
	filter := api.LineFilter{Before: at.before, Until: at.until, Limit: pageSize + 1, Process: page.Process, Match: page.Match}
	if err := filter.Level.UnmarshalText([]byte(cmp.Or(page.Level, slog.LevelInfo.String()))); err != nil {
		return nil, api.BadRequest("unknown level "+strconv.Quote(page.Level),
			"choose one from the list")
	}

	answers, err := fromEach(v, func(ctx context.Context, c *api.Client) ([]eventlog.Line, error) { return c.Logs(ctx, filter) })
	page.Lines, page.First, page.Next = onePage(v, api.NewestLines(answers, filter.Limit),
		func(l *eventlog.Line) string { return v.positionOf(l.ID, l.At) })
	slices.Reverse(page.Lines)
	return page, err
}

func (v *visit) appProcesses() (names []string, err error) {
	statuses, err := v.statuses()
	for _, st := range statuses {
		for _, p := range st.Answer.App {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names, err
}
