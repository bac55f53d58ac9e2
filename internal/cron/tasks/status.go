package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/cron/periodic"
	"tendril/queue"
)

// Any reports whether there are tasks or a file.
func (m *Manager) Any() bool { return m.file.path() != "" || m.current.Load() != nil }

// Off returns the reason that tasks are not scheduled, or "".
func (m *Manager) Off() string {
	if s := m.current.Load(); s != nil {
		return s.off
	}
	return ""
}

func (m *Manager) scheduled() (*schedule, error) {
	s := m.current.Load()
	switch {
	case !m.started.Load():
		return nil, errStarting
	case s == nil:
		return nil, errors.New("no periodic tasks: write cron.yaml, or add --cron FILE")
	case s.scheduler == nil:
		return nil, fmt.Errorf("%w: %s", ErrNotScheduled, s.off)
	}
	return s, nil
}

// Readings returns the scheduled tasks' current state.
func (m *Manager) Readings() []periodic.TaskStatus {
	s, err := m.scheduled()
	if err != nil {
		return nil
	}
	return s.scheduler.Status()
}

// Leading reports whether this instance enqueues the tasks.
func (m *Manager) Leading() bool {
	_, err := m.scheduled()
	return err == nil && m.election.Status().Leading
}

// Election returns this instance's part in the election.
func (m *Manager) Election() *Election { return m.election }

// Count returns the number of tasks, whether scheduled or not.
func (m *Manager) Count() int {
	if m.current.Load() == nil {
		return 0
	}
	return len(m.file.tasks())
}

// Status returns the current state of the tasks.
func (m *Manager) Status() api.TasksStatus {
	st := api.TasksStatus{File: m.file.path()}
	s, err := m.scheduled()
	if err != nil {
		st.Off = err.Error()
		if errors.Is(err, ErrNotScheduled) {
			for _, t := range m.file.tasks() {
				st.Tasks = append(st.Tasks, taskStatus(&t))
			}
		}
		return st
	}

	st.Leader = m.election.Status()
	pauses, missing := s.pauses.all(), m.missingQueues()
	runs := map[string][]periodic.Run{}
	for _, r := range s.scheduler.History("") {
		runs[r.Task] = append(runs[r.Task], r)
	}

	for _, t := range s.scheduler.Status() {
		name := t.Task.Name
		task := scheduledStatus(&t, pauses[name], runs[name])
		if own := missing[name]; own != "" && task.Problem == "" {
			task.Queue = own
			task.Problem = fmt.Sprintf("the queue %s is created at the next restart: until then its runs go to %s", own,
				m.opts.Registry.Queue)
		}
		st.Tasks = append(st.Tasks, task)
	}
	return st
}

func scheduledStatus(t *periodic.TaskStatus, pause pause, runs []periodic.Run) api.Task {
	task := taskStatus(&t.Task)
	task.Paused = t.Paused
	task.PauseReason = pause.Reason
	task.PausedBy = pause.By
	task.PausedAt = pause.At
	task.Failing = t.Failing
	task.Problem = t.Problem
	task.FailedRuns, task.LastFailure = failedRuns(runs)
	if len(runs) > 0 {
		last := taskRun(runs[0])
		task.Last = &last
	}
	return task
}

func (m *Manager) missingQueues() map[string]string {
	missing := map[string]string{}
	for _, t := range m.file.tasks() {
		if m.opts.isMissing(t.Queue) {
			missing[t.Name] = t.Queue
		}
	}
	return missing
}

// runs must be newest first.
func failedRuns(runs []periodic.Run) (failed int, reason string) {
	for i := range runs {
		switch r := &runs[i]; {
		case r.Attempts == 0:
		case r.Result.Outcome != queue.Failed && r.Result.Outcome != queue.Unreached:
			return failed, reason
		default:
			failed++
			reason = cmp.Or(reason, strings.TrimSpace(r.Result.Reason+" "+r.Result.Answer))
		}
	}
	return failed, reason
}

// Describe returns the tasks of a file without scheduling them.
func Describe(file *periodic.File) (all []api.Task) {
	for i := range file.Tasks {
		all = append(all, taskStatus(&file.Tasks[i]))
	}
	return all
}

func taskStatus(t *periodic.Task) api.Task {
	return api.Task{
		Name: t.Name, URL: shownURL(t.URL), Schedule: t.Schedule.String(),
		Words: t.Schedule.Words(), Zone: t.Schedule.Zone().String(),
		Next: t.Schedule.Upcoming(time.Now(), 5), Queue: t.Queue,
		Overlap: string(cmp.Or(t.Overlap, periodic.Allow)), Missed: string(cmp.Or(t.Missed, periodic.MissedOne)),
	}
}

func taskRun(r periodic.Run) api.TaskRun {
	run := api.TaskRun{
		Task: r.Task, RunID: r.ID, Manual: r.Manual, ScheduledAt: r.ScheduledAt, EnqueuedAt: r.EnqueuedAt,
		LatenessMS: r.Lateness.Milliseconds(), Skipped: string(r.Skipped), MessageID: r.MessageID, Resent: r.Resent,
		Attempts: r.Attempts, Status: r.Result.Status, Reason: r.Result.Reason,
		DurationMS: r.Result.Duration.Milliseconds(), FinishedAt: r.FinishedAt,
	}
	if r.Attempts > 0 {
		run.Outcome = r.Result.Outcome.String()
	}
	return run
}

// History returns known runs, newest first; "" means all tasks.
func (m *Manager) History(task string) []api.TaskRun {
	s, err := m.scheduled()
	if err != nil {
		return nil
	}
	var runs []api.TaskRun
	for _, r := range s.scheduler.History(task) {
		runs = append(runs, taskRun(r))
	}
	return runs
}

// Run enqueues a run of a task immediately.
func (m *Manager) Run(ctx context.Context, task string) (api.TaskRun, error) {
	s, err := m.scheduledTask(task)
	if err != nil {
		return api.TaskRun{}, err
	}
	run, sent, err := s.scheduler.RunNow(ctx, task)
	if err != nil {
		return api.TaskRun{}, err
	}
	return api.TaskRun{Task: run.Task, RunID: run.ID, Manual: true, ScheduledAt: run.ScheduledAt,
		EnqueuedAt: time.Now(), MessageID: sent.ID}, nil
}

// Pause pauses a task, on all instances if the registry stores pauses. reason and by may be "".
func (m *Manager) Pause(ctx context.Context, task, reason, by string) error {
	return m.setPaused(ctx, task, pause{reason, by, time.Now().UTC().Truncate(time.Second)}, true)
}

// Resume ends a pause.
func (m *Manager) Resume(ctx context.Context, task string) error {
	return m.setPaused(ctx, task, pause{}, false)
}

func (m *Manager) setPaused(ctx context.Context, task string, why pause, paused bool) error {
	s, err := m.scheduledTask(task)
	if err != nil {
		return err
	}
	return s.pauses.set(ctx, task, why, paused)
}

func (m *Manager) scheduledTask(name string) (*schedule, error) {
	s, err := m.scheduled()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.scheduler.Status(), func(t periodic.TaskStatus) bool { return t.Task.Name == name }) {
		return s, nil
	}
	return nil, queue.Errorf(queue.CodeResourceNotFound, "task %q not found in %s", name, m.file.path())
}

// Known reports whether the registry contains a run with this path. The error may be [periodic.ErrUndecided].
func (m *Manager) Known(ctx context.Context, id, path string) (bool, error) {
	return m.registry.isKnownRun(ctx, id, path)
}

// shownURL hides the query, which may contain a secret.
func shownURL(path string) string {
	if path, _, query := strings.Cut(path, "?"); query {
		return path + "?(hidden)"
	}
	return path
}
