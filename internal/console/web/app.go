package web

import (
	"context"
	"slices"
	"strings"

	"tendril/api"
	"tendril/internal/observe/eventlog"
)

var appScreens = []screen{{path: "/app", entry: "App", view: "app", load: (*visit).app}}

var appActs = []act{{"/app/{name}/restart", func(v *visit) (string, error) {
	return v.patiently("The restart is in progress.", func(ctx context.Context) (string, error) {
		now, err := v.api.RestartProcess(ctx, v.name("name"))
		if now == v.name("name") {
			return now + " was restarted.", err
		}
		return v.name("name") + " was restarted as " + now + ".", err
	})
}}}

const (
	shownLines     = 20
	shownProcesses = 50
)

type appPage struct {
	Processes  []api.Process
	Deployment *api.Deployment
	Poison     *api.PoisonMessages
	Names      []choice
	Process    string
	Lines      []eventlog.Line
	// Target is set if the app is not managed by tendril.
	Target string
}

func (v *visit) app() (any, error) {
	page := &appPage{Processes: v.status.App, Deployment: v.status.Deployment, Poison: v.status.PoisonMessages,
		Process: v.query("process")}
	if len(page.Processes) == 0 {
		if len(v.status.Workers) > 0 {
			page.Target = v.status.Workers[0].Target
		}
		return page, nil
	}

	var names []string
	for _, p := range page.Processes {
		names = append(names, p.Name)
	}

	if len(names) > 1 || page.Process != "" {
		page.Names = v.choices("process", "All", names, strings.Clone)
	}

	if page.Process != "" {
		names = []string{page.Process}
	}

	seen := map[int64]bool{} // a process's log lines include those of its replicas
	for _, name := range names[:min(len(names), shownProcesses)] {
		lines, err := v.api.Logs(v.ctx, api.LineFilter{Process: name, Limit: shownLines})
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if !seen[l.ID] {
				seen[l.ID] = true
				page.Lines = append(page.Lines, l)
			}
		}
	}

	slices.SortFunc(page.Lines, func(a, b eventlog.Line) int { return int(b.ID - a.ID) })
	page.Lines = page.Lines[:min(len(page.Lines), shownLines)]
	slices.Reverse(page.Lines) // they read from top to bottom
	return page, nil
}

// processState returns a process's state in one word. Running processes that are not ready have their own word.
func processState(p api.Process) string {
	switch {
	case p.State == "running" && !p.Ready:
		return "not ready"
	case p.State == "waiting":
		return "restarting"
	}
	return p.State
}
