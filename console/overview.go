package console

import (
	"slices"
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

// DueRun is the next run of one task.
type DueRun struct {
	Task *Task
	At   time.Time
}

// Due are the next runs of all tasks that are not paused, at most that many, in their order. A nil status has none.
func (t *TasksStatus) Due(most int) (runs []DueRun) {
	if t == nil {
		return nil
	}
	for i := range t.Tasks {
		if task := &t.Tasks[i]; !task.Paused {
			for _, at := range task.Next {
				runs = append(runs, DueRun{task, at})
			}
		}
	}
	slices.SortFunc(runs, func(a, b DueRun) int { return a.At.Compare(b.At) })
	return runs[:min(len(runs), most)]
}
