package console

import (
	"cmp"
	"context"
	"strconv"
)

// taskClient asks for the periodic tasks.
type taskClient struct{ conn *connection }

// Tasks returns the periodic tasks as they stand, and who leads.
func (c taskClient) Tasks(ctx context.Context) (TasksStatus, error) {
	return ask[TasksStatus](ctx, c.conn, "GET /api/v1/tasks", nil)
}

// TaskHistory returns up to limit runs, the newest first, of one task or for "" of all; 100
// when limit is 0.
func (c taskClient) TaskHistory(ctx context.Context, name string, limit int) ([]TaskRun, error) {
	pattern, names := "GET /api/v1/history", []string(nil)
	if name != "" {
		pattern, names = "GET /api/v1/tasks/{name}/history", []string{name}
	}
	list, err := ask[runList](ctx, c.conn, pattern+limitQuery(limit), nil, names...)
	return list.Runs, err
}

// RunTask enqueues one run of a task at once, also of a paused one. After an error of status
// 503 the run may have been enqueued all the same.
func (c taskClient) RunTask(ctx context.Context, name string) (TaskRun, error) {
	return ask[TaskRun](ctx, c.conn, "POST /api/v1/tasks/{name}/run", nothing, name)
}

// PauseTask leaves out the runs of a task until ResumeTask. The reason is as for Pause.
func (c taskClient) PauseTask(ctx context.Context, name, why string) error {
	return command(ctx, c.conn, "POST /api/v1/tasks/{name}/pause", reason{why}, name)
}

// ResumeTask undoes PauseTask.
func (c taskClient) ResumeTask(ctx context.Context, name string) error {
	return command(ctx, c.conn, "POST /api/v1/tasks/{name}/resume", nothing, name)
}

func limitQuery(limit int) string { return "?limit=" + strconv.Itoa(cmp.Or(limit, 100)) }
