package console

import (
	"context"

	"tendril/api"
)

// TaskOptions are what a [Server] may ask and do about periodic tasks. All of
// its functions but Any are set.
type TaskOptions struct {
	// Any reports whether there are periodic tasks now: a version of the app may
	// bring them. While there are none the routes of tasks answer 409. Nil stands
	// for yes.
	Any func() bool
	// Status returns the tasks as they stand, in the order of the file.
	Status func() api.TasksStatus
	// Run enqueues one run of a task at once. The error wraps a [queue.Error]
	// of code CodeResourceNotFound when there is no such task, as those of
	// Pause and Resume do.
	Run func(ctx context.Context, name string) (api.TaskRun, error)
	// Pause leaves out all runs of a task, for a reason given by a person, until
	// Resume.
	Pause  func(ctx context.Context, name, reason string) error
	Resume func(ctx context.Context, name string) error
	// History returns what is remembered of the runs of a task, or of all tasks
	// for "", the newest first.
	History func(name string) []api.TaskRun
}
