package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"tendril/api"
	"tendril/queue"
)

const noTaskHint = "'tendril tasks' lists the tasks"

type taskRoutes struct{ tasks *TaskOptions }

func (t *taskRoutes) present() bool { return t.tasks != nil && (t.tasks.Any == nil || t.tasks.Any()) }

func (t *taskRoutes) list(*call) (api.TasksStatus, error) {
	st := t.tasks.Status()
	st.Tasks = notNull(st.Tasks)
	return st, nil
}

func (t *taskRoutes) history(c *call) (api.RunList, error) {
	limit, err := readLimit(c, maxLimit)
	if err != nil {
		return api.RunList{}, err
	}
	runs := t.tasks.History(c.name)
	if len(runs) == 0 && c.name != "" && !t.exists(c.name) {
		return api.RunList{}, api.NotFound("task "+strconv.Quote(c.name)+" not found", noTaskHint)
	}
	return api.RunList{Runs: notNull(runs[:min(len(runs), limit)])}, nil
}

func (t *taskRoutes) run(c *call) (api.TaskRun, error) {
	run, err := t.tasks.Run(c.ctx, c.name)
	return run, t.refusal(c, err)
}

func (t *taskRoutes) pause(c *call, why api.Reason) (api.TaskPaused, error) {
	if why.This {
		return api.TaskPaused{}, api.BadRequest("a task is always paused on all instances", `omit "this"`)
	}
	return api.TaskPaused{Task: c.name, Paused: true}, t.refusal(c, t.tasks.Pause(c.ctx, c.name, why.Reason, c.caller.who))
}

func (t *taskRoutes) resume(c *call) (api.TaskPaused, error) {
	return api.TaskPaused{Task: c.name}, t.refusal(c, t.tasks.Resume(c.ctx, c.name))
}

// refusal returns 404 for an unknown task, 503 for a timeout (the action may have happened) or a missing resource, such
// as the registry's table, and 409 if the environment cannot perform the action.
func (t *taskRoutes) refusal(c *call, err error) error {
	var refused *queue.Error
	switch {
	case errors.As(err, &refused) && refused.Code == queue.CodeResourceNotFound:
		if t.exists(c.name) {
			return api.NewError(http.StatusServiceUnavailable, err.Error(), "")
		}
		return api.NotFound(err.Error(), noTaskHint)
	case c.ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		return api.NewError(http.StatusServiceUnavailable, err.Error(),
			"it may have succeeded: check the task history before you try again")
	}
	return asConflict(err)
}

func (t *taskRoutes) exists(name string) bool {
	return slices.ContainsFunc(t.tasks.Status().Tasks, func(task api.Task) bool { return task.Name == name })
}
