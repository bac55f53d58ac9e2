package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The states of a queue that is worked on, as [Worker.State] names them. The others are Paused, by a person, and
// Waiting, while a gate or a breaker is closed.
const (
	QueueRunning = "Running"
	QueueFailing = "Failing" // the queue cannot be reached
)

// State is what the worker does with its queue in one word, and why; "" for no reason.
func (w *Worker) State() (state, why string) {
	switch {
	case w.Paused:
		return "Paused", w.PauseReason
	case !w.Receiving && len(w.GateReasons) > 0:
		return "Waiting", w.GateReasons[0]
	case w.LastError != "":
		return QueueFailing, w.LastError
	}
	return QueueRunning, w.LimitedBy
}

// FailingShare is the share of the deliveries since the start that failed, 0 to 1.
func (w *Worker) FailingShare() float64 {
	if all := w.Done + w.Failed; all > 0 {
		return float64(w.Failed) / float64(all)
	}
	return 0
}

// The states of a periodic task, as [Task.State] names them.
const (
	TaskScheduled = "Scheduled"
	pausedTask    = "Paused"
	TaskFailing   = "Failing" // it cannot be enqueued, or its last run failed
)

// State is how a task does in one word.
func (t *Task) State() string {
	switch {
	case t.Problem != "" || t.FailedRuns > 0:
		return TaskFailing
	case t.Paused:
		return pausedTask
	}
	return TaskScheduled
}

// Why is the reason for the state; "" for no reason.
func (t *Task) Why() string {
	var why []string
	if t.Paused {
		why = append(why, strings.TrimSuffix("paused: "+t.PauseReason, ": "))
	}
	if t.FailedRuns > 0 {
		runs := "its last run failed"
		if t.FailedRuns > 1 {
			runs = fmt.Sprintf("its last %d runs failed", t.FailedRuns)
		}
		why = append(why, strings.TrimSuffix(runs+": "+t.LastFailure, ": "))
	}
	if t.Problem != "" {
		why = append(why, t.Problem)
	}
	return strings.Join(why, "; ")
}

// First are at most that many tasks: those that fail, then the others as they are due next, then those that are paused.
// A nil status has none.
func (t *TasksStatus) First(most int) []Task {
	if t == nil {
		return nil
	}
	order := []string{TaskFailing, TaskScheduled, pausedTask}
	tasks := slices.Clone(t.Tasks)
	slices.SortStableFunc(tasks, func(a, b Task) int {
		byState := slices.Index(order, a.State()) - slices.Index(order, b.State())
		return cmp.Or(byState, a.due().Compare(b.due()))
	})
	return tasks[:min(len(tasks), most)]
}

// due is when the task is due next; a time after all others without one.
func (t *Task) due() time.Time {
	if len(t.Next) == 0 {
		return time.Unix(1<<40, 0)
	}
	return t.Next[0]
}
