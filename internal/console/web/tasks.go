package web

import (
	"net/http"
	"slices"
	"strconv"

	"tendril/api"
)

var taskScreens = []screen{
	{path: "/tasks", entry: "Scheduled", view: "tasks", load: (*visit).tasks},
	{path: "/tasks/{name}", entry: "Scheduled", view: "task", load: (*visit).task},
}

var taskActs = []act{
	{"/tasks/{name}/run", func(v *visit) (string, error) {
		run, err := v.api.RunTask(v.ctx, v.name("name"))
		return "A run of " + run.Task + " was enqueued.", err
	}},
	{"/tasks/{name}/pause", func(v *visit) (string, error) {
		return v.name("name") + " is paused.", v.api.PauseTask(v.ctx, v.name("name"), v.field("reason"))
	}},
	{"/tasks/{name}/resume", func(v *visit) (string, error) {
		return v.name("name") + " runs again as scheduled.", v.api.ResumeTask(v.ctx, v.name("name"))
	}},
}

const shownOutcomes = 30

type tasksPage struct {
	Status *api.TasksStatus
	Rows   []taskRow
}

type taskRow struct {
	api.Task
	Strip []api.TaskRun
}

func (v *visit) tasks() (any, error) {
	page := &tasksPage{Status: v.status.Tasks}
	if page.Status == nil {
		return page, nil
	}

	runs, err := v.api.TaskHistory(v.ctx, "", shownOutcomes*max(len(page.Status.Tasks), 1))
	if err != nil {
		return nil, err
	}

	for _, t := range page.Status.Tasks {
		row := taskRow{Task: t}
		for _, run := range runs {
			if run.Task == t.Name && len(row.Strip) < shownOutcomes {
				row.Strip = append(row.Strip, run)
			}
		}
		slices.Reverse(row.Strip)
		page.Rows = append(page.Rows, row)
	}

	return page, nil
}

type taskPage struct {
	api.Task
	Leader api.Leader
	Runs   []api.TaskRun
}

func (v *visit) task() (any, error) {
	name := v.name("name")
	v.title = name
	if v.status.Tasks != nil {
		for _, t := range v.status.Tasks.Tasks {
			if t.Name == name {
				runs, err := v.api.TaskHistory(v.ctx, name, pageSize)
				return &taskPage{t, v.status.Tasks.Leader, runs}, err
			}
		}
	}
	return nil, api.NewError(http.StatusNotFound, "task "+strconv.Quote(name)+" not found",
		"choose one from the list")
}

func runState(run api.TaskRun) string {
	switch {
	case run.Skipped != "":
		return "skipped"
	case run.Outcome != "":
		return run.Outcome
	}
	return "enqueued"
}
