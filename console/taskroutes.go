package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"tendril/queue"
)

// maxRuns is the most runs of one answer, and defaultRuns how many it has
// unless asked.
const (
	maxRuns     = 1000
	defaultRuns = 100
)

// noTaskHint is what to do about a name that no task has.
const noTaskHint = "'tendril tasks' lists the tasks that there are"

// runList is the answer of the histories.
type runList struct {
	Runs []TaskRun `json:"runs"`
}

// taskPaused is the answer of pausing and resuming a task.
type taskPaused struct {
	Task   string `json:"task"`
	Paused bool   `json:"paused"`
}

func (s *Server) tasks() (*TaskOptions, error) {
	if t := s.opts.Tasks; t == nil || t.Any != nil && !t.Any() {
		return nil, refuse(http.StatusConflict, "this environment has no periodic tasks",
			"write cron.yaml or give --cron FILE")
	}
	return s.opts.Tasks, nil
}

func (s *Server) getTasks(*http.Request) (answer, error) {
	t, err := s.tasks()
	if err != nil {
		return answer{}, err
	}
	st := t.Status()
	if st.Tasks == nil {
		st.Tasks = []Task{}
	}
	return ok(st), nil
}

// getHistory answers with the runs of all tasks, or of the one in the path. One
// that is in the file no more is known as long as a run of it is remembered.
func (s *Server) getHistory(r *http.Request) (answer, error) {
	t, err := s.tasks()
	if err != nil {
		return answer{}, err
	}
	limit, err := count(r.URL.Query().Get("limit"), 1, maxRuns)
	if err != nil {
		return answer{}, err
	}
	if limit == 0 {
		limit = defaultRuns
	}
	name := r.PathValue("name")
	runs := t.History(name)
	if len(runs) == 0 && name != "" && !t.knows(name) {
		return answer{}, refuse(http.StatusNotFound, "there is no task "+strconv.Quote(name), noTaskHint)
	}
	if runs == nil {
		runs = []TaskRun{}
	}
	return ok(runList{runs[:min(len(runs), limit)]}), nil
}

func (s *Server) postTaskRun(r *http.Request) (answer, error) {
	t, err := s.tasks()
	if err != nil {
		return answer{}, err
	}
	if err := readBody(r, &struct{}{}); err != nil {
		return answer{}, err
	}
	name := r.PathValue("name")
	run, err := t.Run(r.Context(), name)
	return ok(run), taskError(r.Context(), t, name, err)
}

func (s *Server) postTaskPause(r *http.Request) (answer, error) {
	t, err := s.tasks()
	if err != nil {
		return answer{}, err
	}
	why, err := readReason(r)
	if err != nil {
		return answer{}, err
	}
	name := r.PathValue("name")
	return ok(taskPaused{name, true}), taskError(r.Context(), t, name, t.Pause(r.Context(), name, why))
}

func (s *Server) postTaskResume(r *http.Request) (answer, error) {
	t, err := s.tasks()
	if err != nil {
		return answer{}, err
	}
	if err := readBody(r, &struct{}{}); err != nil {
		return answer{}, err
	}
	name := r.PathValue("name")
	return ok(taskPaused{name, false}), taskError(r.Context(), t, name, t.Resume(r.Context(), name))
}

// taskError turns the plain error of an act on a task into a refusal: 404 when
// there is no such task, 503 when there was no answer in time and the act may
// have been done all the same, 409 when the environment cannot do it. What else
// is missing, such as the registry's table, is not the caller's mistake.
func taskError(ctx context.Context, t *TaskOptions, name string, err error) error {
	var refused *queue.Error
	switch {
	case errors.As(err, &refused) && refused.Code == queue.CodeResourceNotFound:
		if t.knows(name) {
			return refuse(http.StatusServiceUnavailable, err.Error(), "")
		}
		return refuse(http.StatusNotFound, err.Error(), noTaskHint)
	case ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		return refuse(http.StatusServiceUnavailable, err.Error(),
			"it may have been done all the same: look at the tasks' history before you try again")
	}
	return unable(err)
}

// knows reports whether there is a task of that name now.
func (t *TaskOptions) knows(name string) bool {
	return slices.ContainsFunc(t.Status().Tasks, func(task Task) bool { return task.Name == name })
}
