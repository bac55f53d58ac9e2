package web

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tendril/api"
	"tendril/internal/observe/eventlog"
)

var logScreens = []screen{{path: "/logs", entry: "Logs", view: "logs", load: (*visit).logs}}

type logsPage struct {
	Processes, Levels     []choice
	Process, Level, Match string
	Lines                 []eventlog.Line
	First, Next           string
}

func (v *visit) logs() (any, error) {
	page := &logsPage{Process: v.query("process"), Level: v.query("level"), Match: v.query("match"),
		Levels: v.choices("level", "All levels", []string{"warn", "error"}, capital)}
	names := []string{eventlog.Own}
	for _, p := range v.status.App {
		names = append(names, p.Name)
	}

	if page.Process != "" && !slices.Contains(names, page.Process) {
		names = append(names, page.Process)
	}

	page.Processes = v.choices("process", "All processes", names, strings.Clone)
	before, err := v.before()
	if err != nil {
		return nil, err
	}

	filter := api.LineFilter{Before: before, Limit: pageSize + 1, Process: page.Process, Match: page.Match}
	if err := filter.Level.UnmarshalText([]byte(cmp.Or(page.Level, slog.LevelInfo.String()))); err != nil {
		return nil, &api.Error{Status: http.StatusBadRequest, Message: "unknown level " + strconv.Quote(page.Level),
			Hint: "choose one of the list"}
	}

	page.Lines, err = v.api.Logs(v.ctx, filter)
	page.First, page.Next = v.pages(len(page.Lines), func(i int) int64 { return page.Lines[i].ID })
	page.Lines = page.Lines[:min(len(page.Lines), pageSize)]
	slices.Reverse(page.Lines) // they read from top to bottom
	return page, err
}
