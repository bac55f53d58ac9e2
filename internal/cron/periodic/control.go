package periodic

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"slices"
	"time"

	"tendril/internal/config/yamlfile"
	"tendril/internal/registry"
	"tendril/queue"
)

// Reload replaces the tasks; nil means none. Tasks with an unchanged name and schedule continue. The others do not
// catch up on earlier runs.
func (s *Scheduler) Reload(file *File) {
	r := s.replaceTasks(file, s.opts.Wall().Round(0))
	s.wake()
	call(s.opts.Events.Reloaded, r)
}

// changed is the start of new tasks; zero means the registry's.
func (s *Scheduler) replaceTasks(file *File, changed time.Time) Reloaded {
	if file == nil {
		file = &File{}
	}
	now := s.opts.Wall().Round(0)
	s.mu.Lock()
	defer s.mu.Unlock()

	r := Reloaded{Tasks: len(file.Tasks), Removed: len(s.entries)}
	entries := make([]*entry, 0, len(file.Tasks))
	for _, t := range file.Tasks {
		e := s.entry(t.Name)
		if e == nil {
			e = &entry{task: t, from: now, changed: changed}
			r.Added++
		} else {
			r.Removed--
			if !sameTask(e.task, t) {
				r.Changed++
			}
			e.replaceTask(t, now)
		}
		entries = append(entries, e)
	}

	s.entries = entries
	return r
}

func (e *entry) replaceTask(t Task, now time.Time) {
	if !sameSchedule(e.task.Schedule, t.Schedule) {
		e.from = now
		e.changed = now
		e.timesKnown = false
	}
	e.task = t
	e.next = Slot{}
}

// The caller must hold mu.
func (s *Scheduler) entry(name string) *entry {
	i := slices.IndexFunc(s.entries, func(e *entry) bool { return e.task.Name == name })
	if i < 0 {
		return nil
	}
	return s.entries[i]
}

func sameSchedule(a, b Schedule) bool {
	return a.String() == b.String() && a.Zone().String() == b.Zone().String()
}

func sameTask(a, b Task) bool {
	same := sameSchedule(a.Schedule, b.Schedule)
	a.Schedule = Schedule{}
	b.Schedule = Schedule{}
	a.Line = 0
	b.Line = 0
	return same && reflect.DeepEqual(a, b)
}

// SetPaused pauses or resumes a task on this instance. Runs due during a pause are skipped, and not caught up.
func (s *Scheduler) SetPaused(name string, paused bool) error {
	if _, err := s.task(name); err != nil {
		return err
	}
	s.mu.Lock()
	changed := s.paused[name] != paused
	if paused {
		s.paused[name] = true
	} else {
		delete(s.paused, name)
	}
	s.mu.Unlock()

	if changed {
		call(s.opts.Events.PauseChanged, PauseChanged{Task: name, Paused: paused})
	}
	return nil
}

func (s *Scheduler) task(name string) (Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entry(name); e != nil {
		return e.task, nil
	}

	var names []string
	for _, e := range s.entries {
		names = append(names, e.task.Name)
	}
	switch {
	case len(names) == 0:
		return Task{}, fmt.Errorf("task %s not found: the environment has no tasks; write them into cron.yaml",
			yamlfile.Shown(name))
	case len(names) > 10:
		names = append(names[:10], "others")
	}
	return Task{}, fmt.Errorf("task %s not found: use %s", yamlfile.Shown(name), joinWords(names))
}

// RunNow enqueues a run immediately, on any instance, even if the task is paused.
func (s *Scheduler) RunNow(ctx context.Context, name string) (registry.Run, queue.Sent, error) {
	task, err := s.task(name)
	if err != nil {
		return registry.Run{}, queue.Sent{}, err
	}
	now := s.opts.Wall().Round(0)
	id := runID(name, now) + "#" + rand.Text()[:12]
	run := newScheduledRun(&task, Slot{ScheduledAt: now, DueAt: now}, id, s.queueOf(&task), true)

	ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
	defer cancel()
	began := time.Now()
	result, err := s.registry.Enqueue(ctx, 0, run)
	if err != nil {
		return run, queue.Sent{}, fmt.Errorf("running the task %s: %w", yamlfile.Shown(name), err)
	}
	s.recordEnqueued(&run, &result, now, time.Since(began))
	return run, result.Sent, nil
}

// Outcome records the result of a run's delivery. Another instance may have enqueued the run.
func (s *Scheduler) Outcome(o Outcome) { s.history.recordOutcome(o) }

// History returns known runs, newest first; "" means all tasks.
func (s *Scheduler) History(task string) []Run { return s.history.runs(task) }

// Recorded returns how often the history has changed.
func (s *Scheduler) Recorded() int64 { return s.history.count() }

// TaskStatus is a task's current state.
type TaskStatus struct {
	Task    Task
	Paused  bool
	Next    time.Time // without jitter, in the task's time zone
	Failing int       // consecutive failures
	Problem string    // last failure; "" after a success
}

// Status returns the tasks in the order of the file.
func (s *Scheduler) Status() (tasks []TaskStatus) {
	now := s.opts.Wall()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		tasks = append(tasks, TaskStatus{Task: e.task, Paused: s.paused[e.task.Name], Next: e.task.Schedule.Next(now),
			Failing: e.failures, Problem: e.problem})
	}
	return tasks
}
