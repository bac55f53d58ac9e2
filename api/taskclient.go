package api

import (
	"cmp"
	"context"
	"strconv"
)

// Tasks returns the periodic tasks as they stand, and who leads.
func (c *Client) Tasks(ctx context.Context) (TasksStatus, error) {
	return ask[TasksStatus](ctx, c.conn, "GET /api/v1/tasks", nil)
}

// TaskHistory returns up to limit runs, the newest first, of one task or for "" of all; 100
// when limit is 0.
func (c *Client) TaskHistory(ctx context.Context, name string, limit int) ([]TaskRun, error) {
	pattern, names := "GET /api/v1/history", []string(nil)
	if name != "" {
		pattern, names = "GET /api/v1/tasks/{name}/history", []string{name}
	}
	list, err := ask[RunList](ctx, c.conn, pattern+limitQuery(limit), nil, names...)
	return list.Runs, err
}

// RunTask enqueues one run of a task at once, also of a paused one. After an error of status
// 503 the run may have been enqueued all the same.
func (c *Client) RunTask(ctx context.Context, name string) (TaskRun, error) {
	return ask[TaskRun](ctx, c.conn, "POST /api/v1/tasks/{name}/run", nothing, name)
}

// PauseTask leaves out the runs of a task until ResumeTask. The reason is as for Pause.
func (c *Client) PauseTask(ctx context.Context, name, why string) error {
	return command(ctx, c.conn, "POST /api/v1/tasks/{name}/pause", Reason{why}, name)
}

// ResumeTask undoes PauseTask.
func (c *Client) ResumeTask(ctx context.Context, name string) error {
	return command(ctx, c.conn, "POST /api/v1/tasks/{name}/resume", nothing, name)
}

func limitQuery(limit int) string { return "?limit=" + strconv.Itoa(cmp.Or(limit, 100)) }
