package web

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"tendril/api"
	"tendril/internal/observe/eventlog"
)

var appScreens = []screen{{path: "/app", entry: "App", view: "app", load: (*visit).loadApp, fleet: true}}

var appActs = []act{{"/app/{name}/restart", func(v *visit) (string, error) {
	return v.waitBriefly("The restart is in progress.", func(ctx context.Context) (string, error) {
		name := v.name("name")
		replacement, err := v.api.RestartProcess(ctx, name)
		if replacement == name {
			return name + " was restarted.", err
		}
		return name + " was restarted as " + replacement + ".", err
	})
}}}

const (
	shownLines     = 20
	shownProcesses = 50
)

type appPage struct {
	Instances []appInstance
	Processes int
	Names     []choice
	Process   string
	Lines     []eventlog.Line
	// Target is the target of the first queue; set only if there are no app processes.
	Target     string
	Everywhere bool
}

type appInstance struct {
	*api.KnownInstance
	api.Status
}

func (v *visit) loadApp() (any, error) {
	page := &appPage{Process: v.query("process")}
	statuses, err := v.statuses()
	if err != nil {
		return nil, err
	}
	for _, st := range statuses {
		page.Instances = append(page.Instances, appInstance{st.Instance, st.Answer})
		page.Processes += len(st.Answer.App)
	}
	if page.Processes == 0 {
		if len(v.Status.Workers) > 0 {
			page.Target = v.Status.Workers[0].Target
		}
		return page, nil
	}

	names, err := v.appProcesses()
	if err != nil {
		return nil, err
	}
	if len(names) > 1 || page.Process != "" {
		page.Names = v.choices("process", "All", names, strings.Clone)
	}
	if page.Process != "" {
		names = []string{page.Process}
	}

	answers, err := fromEach(v, func(ctx context.Context, c *api.Client) ([]eventlog.Line, error) {
		return lastLines(ctx, c, names)
	})
	page.Lines = api.NewestLines(answers, shownLines)
	slices.Reverse(page.Lines)
	page.Everywhere = v.deploysEverywhere()
	return page, err
}

func lastLines(ctx context.Context, c *api.Client, names []string) (all []eventlog.Line, err error) {
	for _, name := range names[:min(len(names), shownProcesses)] {
		lines, err := c.Logs(ctx, api.LineFilter{Process: name, Limit: shownLines})
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
	}
	slices.SortFunc(all, func(a, b eventlog.Line) int { return cmp.Compare(b.ID, a.ID) })
	// A process's lines include its replicas' lines.
	return slices.CompactFunc(all, func(a, b eventlog.Line) bool { return a.ID == b.ID }), nil
}

func processState(p api.Process) string {
	switch {
	case p.State == "running" && !p.Ready:
		return "not ready"
	case p.State == "waiting":
		return "restarting"
	}
	return p.State
}
