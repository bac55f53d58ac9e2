package environment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tendril/console"
	"tendril/periodic"
	"tendril/queue"
)

// taskOptions is what the console may ask and do about periodic tasks; nil
// where it cannot have any.
func (e *Environment) taskOptions() *console.TaskOptions {
	if e.QueuesOnly {
		return nil
	}
	return &console.TaskOptions{
		Any:    func() bool { return e.CronFile() != "" || e.cron.Load() != nil },
		Status: e.tasksStatus, Run: e.runTask, Pause: e.pauseTask, Resume: e.resumeTask, History: e.taskHistory,
		Reload: e.Reload,
	}
}

// errNotScheduled: there are tasks, and nobody who could be trusted to enqueue them once.
var errNotScheduled = errors.New("nothing is scheduled")

// scheduler returns the scheduler, or says why there is none.
func (e *Environment) scheduler() (*periodic.Scheduler, error) {
	select {
	case <-e.started:
	default:
		return nil, errors.New("the environment is starting")
	}
	t := e.cron.Load()
	switch {
	case t == nil:
		return nil, errors.New("there are no periodic tasks: write cron.yaml, or give --cron FILE")
	case t.scheduler == nil:
		return nil, fmt.Errorf("%w: %s", errNotScheduled, t.off)
	}
	return t.scheduler, nil
}

func (e *Environment) tasksStatus() console.TasksStatus {
	st := console.TasksStatus{File: e.tasksFile()}
	s, err := e.scheduler()
	now := e.cron.Load()
	if err != nil {
		st.Off = err.Error()
		if errors.Is(err, errNotScheduled) && now != nil { // a version without may have taken them since
			for _, t := range now.listed() {
				st.Tasks = append(st.Tasks, shownTask(&t))
			}
		}
		return st
	}
	st.Leader = now.leaderStatus()
	all, _ := s.Status()
	reasons := now.reasons()
	for _, t := range all {
		task := shownTask(&t.Task)
		task.Paused, task.PauseReason, task.Failing = t.Paused, reasons[t.Task.Name], t.Failing
		if runs := s.History(t.Task.Name); len(runs) > 0 {
			last := taskRun(runs[0])
			task.Last = &last
		}
		st.Tasks = append(st.Tasks, task)
	}
	return st
}

func shownTask(t *periodic.Task) console.Task {
	return console.Task{
		Name: t.Name, URL: t.URL, Schedule: t.Schedule.String(), Words: t.Schedule.Words(), Zone: t.Schedule.Zone().String(),
		Next: t.Schedule.Upcoming(time.Now(), 5), Queue: t.Queue,
		Overlap: orWord(string(t.Overlap), string(periodic.Allow)),
		Missed:  orWord(string(t.Missed), string(periodic.MissedOne)),
	}
}

func orWord(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}

func (t *tasks) leaderStatus() console.Leader {
	if t.elector == nil {
		return console.Leader{Leading: true, Local: true}
	}
	l := t.elector.Status()
	out := console.Leader{Leading: l.Term > 0, Term: max(l.Term, l.LeaderTerm), Holder: l.Leader,
		AgeSeconds: l.Age.Seconds()}
	if l.Err != nil {
		out.Error = l.Err.Error()
	}
	return out
}

func taskRun(r periodic.Run) console.TaskRun {
	run := console.TaskRun{
		Task: r.Task, RunID: r.ID, Manual: r.Manual, ScheduledAt: r.ScheduledAt, EnqueuedAt: r.EnqueuedAt,
		LatenessMS: r.Lateness.Milliseconds(),
		Skipped:    string(r.Skipped), MessageID: r.MessageID, Resent: r.Resent, Attempts: r.Attempts,
		Status: r.Status, Reason: r.Reason, DurationMS: r.Duration.Milliseconds(), FinishedAt: r.FinishedAt,
	}
	if r.Attempts > 0 {
		run.Outcome = r.Outcome.String()
	}
	return run
}

func (e *Environment) taskHistory(name string) []console.TaskRun {
	s, err := e.scheduler()
	if err != nil {
		return nil
	}
	var runs []console.TaskRun
	for _, r := range s.History(name) {
		runs = append(runs, taskRun(r))
	}
	return runs
}

func (e *Environment) runTask(ctx context.Context, name string) (console.TaskRun, error) {
	s, err := e.findTask(name)
	if err != nil {
		return console.TaskRun{}, err
	}
	f, sent, err := s.RunNow(ctx, name)
	if err != nil {
		return console.TaskRun{}, err
	}
	return console.TaskRun{Task: f.Task, RunID: f.ID, Manual: true, ScheduledAt: f.ScheduledAt, EnqueuedAt: time.Now(),
		MessageID: sent.ID}, nil
}

// pauseTask pauses a task on every instance that shares the registry, where the
// registry can say so; else on this one.
func (e *Environment) pauseTask(ctx context.Context, name, reason string) error {
	s, err := e.findTask(name)
	if err != nil {
		return err
	}
	if err := e.cron.Load().setPaused(ctx, name, reason, true); err != nil {
		return err
	}
	return s.Pause(name)
}

func (e *Environment) resumeTask(ctx context.Context, name string) error {
	s, err := e.findTask(name)
	if err != nil {
		return err
	}
	if err := e.cron.Load().setPaused(ctx, name, "", false); err != nil {
		return err
	}
	return s.Resume(name)
}

// findTask returns the scheduler that has a task of that name.
func (e *Environment) findTask(name string) (*periodic.Scheduler, error) {
	s, err := e.scheduler()
	if err != nil {
		return nil, err
	}
	all, _ := s.Status()
	for _, t := range all {
		if t.Task.Name == name {
			return s, nil
		}
	}
	return nil, queue.Errorf(queue.CodeResourceNotFound, "there is no task %q in %s", name, e.cron.Load().file())
}

// setPaused tells the registry, and remembers the reason.
func (t *tasks) setPaused(ctx context.Context, name, reason string, paused bool) error {
	if t.pauses != nil {
		if err := t.pauses.SetPaused(ctx, name, reason, paused); err != nil {
			return fmt.Errorf("telling the registry: %w", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.why, name)
	if paused {
		t.why[name] = reason
	}
	return nil
}

// reasons returns why tasks are paused, as far as known here.
func (t *tasks) reasons() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]string, len(t.why))
	for name, reason := range t.why {
		all[name] = reason
	}
	return all
}

// learn takes the pauses that the registry has.
func (t *tasks) learn(reasons map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.why)
	for name, reason := range reasons {
		t.why[name] = reason
	}
}
