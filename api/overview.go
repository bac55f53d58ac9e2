package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Results of [Worker.State] that callers compare.
const (
	QueueRunning = "Running"
	QueueFailing = "Failing" // the queue is unreachable
)

// State summarizes the worker's state in one word, with an optional reason.
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

// FailingShare returns the failed share of deliveries since startup, 0 to 1.
func (w *Worker) FailingShare() float64 {
	if all := w.Done + w.Failed; all > 0 {
		return float64(w.Failed) / float64(all)
	}
	return 0
}

// States of a periodic task, see [Task.State].
const (
	TaskScheduled = "Scheduled"
	pausedTask    = "Paused"
	TaskFailing   = "Failing" // it cannot be enqueued, or its last run failed
)

// State summarizes the task's state in one word.
func (t *Task) State() string {
	switch {
	case t.Problem != "" || t.FailedRuns > 0:
		return TaskFailing
	case t.Paused:
		return pausedTask
	}
	return TaskScheduled
}

// Why returns the reason for the state, or "".
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

// First returns the most important tasks, at most most of them: failing ones, then scheduled ones by next run, then
// paused ones.
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

func (t *Task) due() time.Time {
	if len(t.Next) == 0 {
		return time.Unix(1<<40, 0)
	}
	return t.Next[0]
}
