package console

import (
	"context"

	"tendril/api"
)

// TaskOptions provide access to periodic tasks. All functions except Any are required.
type TaskOptions struct {
	// Any reports whether there are periodic tasks, which depends on the app's version. Without tasks, their routes
	// return 409. Nil means that there are tasks.
	Any func() bool
	// Status returns the tasks in file order.
	Status func() api.TasksStatus
	// Run enqueues one run of a task immediately. For an unknown task, Run, Pause and Resume return a [queue.Error]
	// with CodeResourceNotFound.
	Run    func(ctx context.Context, name string) (api.TaskRun, error)
	Pause  func(ctx context.Context, name, reason, by string) error
	Resume func(ctx context.Context, name string) error
	// History returns the recorded runs of a task, or of all tasks for "", newest first.
	History func(name string) []api.TaskRun
}
