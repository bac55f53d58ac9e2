package web

import (
	"slices"

	"tendril/api"
)

var taskScreens = []screen{
	{path: "/tasks", entry: "Periodic tasks", view: "tasks", load: (*visit).loadTasks},
	{path: "/tasks/{name}", entry: "Periodic tasks", view: "task", load: (*visit).loadTask},
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

func (v *visit) loadTasks() (any, error) {
	page := &tasksPage{Status: v.Status.Tasks}
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
	Runs []api.TaskRun
}

func (v *visit) loadTask() (any, error) {
	name := v.name("name")
	v.title = name
	i := -1
	if v.Status.Tasks != nil {
		i = slices.IndexFunc(v.Status.Tasks.Tasks, func(t api.Task) bool { return t.Name == name })
	}
	if i < 0 {
		return nil, errNotFound("task", name)
	}

	runs, err := v.api.TaskHistory(v.ctx, name, pageSize)
	return &taskPage{v.Status.Tasks.Tasks[i], runs}, err
}

func runState(run api.TaskRun) string {
	switch {
	case run.Skipped != "":
		return "skipped"
	case run.Outcome != "":
		return run.Outcome
	}
	return "not delivered here yet"
}
