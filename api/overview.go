package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FailingShare returns the share of failed deliveries in the last five minutes, 0 to 1.
func (w *Worker) FailingShare() float64 {
	if w.RecentDeliveries > 0 {
		return float64(w.RecentFailed) / float64(w.RecentDeliveries)
	}
	return 0
}

// States returned by [Task.State].
const (
	TaskScheduled = "Scheduled"
	pausedTask    = "Paused"
	TaskFailing   = "Failing" // not enqueued, or the last run failed
)

// State returns the task's state in one word.
func (t *Task) State() string {
	switch {
	case t.Problem != "" || t.FailedRuns > 0:
		return TaskFailing
	case t.Paused:
		return pausedTask
	}
	return TaskScheduled
}

// Why returns the state's reason, or "".
func (t *Task) Why() string {
	var why []string
	if t.Paused {
		why = append(why, strings.TrimSuffix("paused: "+t.PauseText(), ": "))
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

// PauseText returns text such as "by owner since 14:02 UTC: audit".
func (t *Task) PauseText() string { return pauseText(t.PausedBy, t.PausedAt, t.PauseReason) }

// First returns up to most tasks: failing ones, then scheduled ones by next run, then paused ones.
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
