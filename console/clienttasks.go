package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// taskPath is the path of a task. Its name may be any text, "/" and ".."
// included: dots are escaped so that nobody takes them for steps.
func taskPath(name, rest string) string {
	return "/api/v1/tasks/" + strings.ReplaceAll(url.PathEscape(name), ".", "%2E") + rest
}

// Tasks returns the periodic tasks as they stand, and who leads. The error has
// status 409 when the environment has none.
func (c *Client) Tasks(ctx context.Context) (TasksStatus, error) {
	var st TasksStatus
	_, err := c.call(ctx, http.MethodGet, "/api/v1/tasks", nil, &st)
	return st, err
}

// TaskHistory returns up to limit runs, the newest first, of one task or for ""
// of all: 1 to 1000, 100 when limit is 0. The error has status 404 when there is
// no such task.
func (c *Client) TaskHistory(ctx context.Context, name string, limit int) ([]TaskRun, error) {
	path := "/api/v1/history"
	if name != "" {
		path = taskPath(name, "/history")
	}
	if limit != 0 {
		path += "?limit=" + strconv.Itoa(limit)
	}
	var list runList
	_, err := c.call(ctx, http.MethodGet, path, nil, &list)
	return list.Runs, err
}

// RunTask enqueues one run of a task at once, also of a paused one. The error has
// status 404 when there is no such task; after one of status 503 the run may
// have been enqueued all the same.
func (c *Client) RunTask(ctx context.Context, name string) (TaskRun, error) {
	var run TaskRun
	_, err := c.call(ctx, http.MethodPost, taskPath(name, "/run"), nothing{}, &run)
	return run, err
}

// PauseTask leaves out the runs of a task until ResumeTask. The reason is shown
// to everybody who asks; up to 200 bytes.
func (c *Client) PauseTask(ctx context.Context, name, why string) error {
	_, err := c.call(ctx, http.MethodPost, taskPath(name, "/pause"), reason{why}, nil)
	return err
}

// ResumeTask undoes PauseTask.
func (c *Client) ResumeTask(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodPost, taskPath(name, "/resume"), nothing{}, nil)
	return err
}

// Reload makes the environment put in force what changed in its folder since it
// was started, as the signal HUP does, and returns what that was. The error has a
// [Detail] for each thing that is wrong in the file of tasks, status 422 when a
// deployment was begun and went wrong, as with [Client.Deploy], and 409 when there
// is nothing to reload or a deployment is under way. What was in force then stays.
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	var done ReloadResult
	_, err := c.callBy(ctx, c.slow, http.MethodPost, "/api/v1/reload", nothing{}, &done)
	return done, err
}
