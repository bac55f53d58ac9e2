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

// Reload replaces the tasks by those of file at once; nil means none. A task
// of a name that was there before goes on where it stands. One that is new or
// came back, or whose schedule changed, counts from now: earlier times are not
// made up for. Runs that are being
// enqueued are finished.
func (s *Scheduler) Reload(file *File) {
	r := s.swap(file, s.opts.Wall().Round(0))
	s.wake()
	call(s.opts.Events.Reloaded, r)
}

// swap replaces the tasks. changed is when those that are new here count from,
// whatever the registry says; zero means that it may know better.
func (s *Scheduler) swap(file *File, changed time.Time) Reloaded {
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
			e = &entry{from: now, changed: changed}
			r.Added++
		} else {
			r.Removed--
			if !sameTask(e.task, t) {
				r.Changed++
			}
			if !sameSchedule(e.task.Schedule, t.Schedule) {
				e.from, e.changed, e.known = now, now, false // the registry learns of the schedule
			}
		}
		e.task, e.next = t, Slot{}
		entries = append(entries, e)
	}

	s.entries = entries
	return r
}

// entry returns the task of a name; nil when there is none. Called with the
// lock held.
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
	a.Schedule, b.Schedule, a.Line, b.Line = Schedule{}, Schedule{}, 0, 0
	return same && reflect.DeepEqual(a, b)
}

// Pause leaves out all runs of a task until [Scheduler.Resume], on this
// instance. Runs that a person asks for are not affected. The error is that
// there is no such task.
func (s *Scheduler) Pause(name string) error { return s.hold(name, true) }

// Resume ends a pause. What was due during it is not made up for, if this
// instance led.
func (s *Scheduler) Resume(name string) error { return s.hold(name, false) }

func (s *Scheduler) hold(name string, paused bool) error {
	s.mu.Lock()
	if s.entry(name) == nil {
		defer s.mu.Unlock()
		return s.noTask(name)
	}
	changed := s.held[name] != paused
	if s.held[name] = paused; !paused {
		delete(s.held, name)
	}
	s.mu.Unlock()
	if changed {
		call(s.opts.Events.Held, Held{Task: name, Paused: paused})
	}
	return nil
}

// noTask is the error for a name that no task has. Called with the lock held.
func (s *Scheduler) noTask(name string) error {
	var names []string
	for _, e := range s.entries {
		names = append(names, e.task.Name)
	}
	switch {
	case len(names) == 0:
		return fmt.Errorf("there is no task %s: the environment has no tasks; write them into cron.yaml",
			yamlfile.Shown(name))
	case len(names) > 10:
		names = append(names[:10], "others")
	}
	return fmt.Errorf("there is no task %s: there are %s", yamlfile.Shown(name), list(names))
}

// RunNow enqueues one run of a task at once, on any instance, also of a paused
// one. It does not change when the task is due next.
func (s *Scheduler) RunNow(ctx context.Context, name string) (registry.Run, queue.Sent, error) {
	s.mu.Lock()
	e := s.entry(name)
	if e == nil {
		defer s.mu.Unlock()
		return registry.Run{}, queue.Sent{}, s.noTask(name)
	}
	task := e.task
	s.mu.Unlock()

	now := s.opts.Wall().Round(0)
	slot := Slot{ScheduledAt: now, DueAt: now}
	id := runID(name, now) + "#" + rand.Text()[:12]
	a := attempt{start: now, run: newScheduledRun(&task, slot, id, s.queueOf(&task), true)}
	ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
	defer cancel()
	began := time.Now()
	if a.answer, a.err = s.registry.Enqueue(ctx, 0, a.run); a.err != nil {
		return a.run, queue.Sent{}, fmt.Errorf("running the task %s: %w", yamlfile.Shown(name), a.err)
	}
	a.took = time.Since(began)
	s.enqueued(a)
	return a.run, a.answer.Sent, nil
}

// Outcome records how a delivery of a run's message ended, also of a run that
// another instance enqueued.
func (s *Scheduler) Outcome(o Outcome) { s.history.outcome(o) }

// History returns the remembered runs of a task, or of all tasks for "",
// the newest first.
func (s *Scheduler) History(task string) []Run { return s.history.runs(task) }

// Recorded counts the changes of the history: it differs when there is something new in it.
func (s *Scheduler) Recorded() int64 { return s.history.count() }

// TaskStatus is a task as it stands.
type TaskStatus struct {
	Task    Task
	Paused  bool
	Next    time.Time // when it is due next, without jitter, in its zone
	Failing int       // how many tries failed in a row
	Problem string    // why the last of them did; "" when none failed
}

// Status returns the tasks in the order of the file.
func (s *Scheduler) Status() (tasks []TaskStatus) {
	now := s.opts.Wall()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		tasks = append(tasks, TaskStatus{Task: e.task, Paused: s.held[e.task.Name], Next: e.task.Schedule.Next(now),
			Failing: e.failures, Problem: e.problem})
	}
	return tasks
}
