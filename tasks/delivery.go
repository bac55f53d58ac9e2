package tasks

import (
	"cmp"
	"context"
	"sync"

	"tendril/periodic"
)

// Account keeps account of the deliveries of scheduled runs. It is safe for concurrent use.
type Account struct {
	scheduler *periodic.Scheduler

	mu     sync.Mutex
	inWork map[string]int // deliveries by task
}

// Begun records that a run of a task is delivered now.
func (a *Account) Begun(task string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inWork[task]++
}

// Ended records how the delivery of a run ended.
func (a *Account) Ended(outcome periodic.Outcome) {
	a.mu.Lock()
	if a.inWork[outcome.Task]--; a.inWork[outcome.Task] == 0 {
		delete(a.inWork, outcome.Task)
	}
	a.mu.Unlock()
	a.scheduler.Outcome(outcome)
}

func (a *Account) anyInWork(task string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inWork[task] > 0
}

// Account returns what keeps account of deliveries; nil while nothing is scheduled.
func (m *Manager) Account() *Account {
	if s := m.current.Load(); s != nil && s.scheduler != nil {
		return s.account
	}
	return nil
}

// unfinished reports whether the previous run of a task is unfinished: the app works on it
// here, or its message still lies in an embedded queue. Of runs that other machines work on,
// nothing is known.
func (m *Manager) unfinished(task periodic.Task) bool {
	a, b := m.Account(), m.opts.Registry.Broker
	switch {
	case a == nil:
		return false
	case a.anyInWork(task.Name):
		return true
	case b == nil:
		return false
	}
	for _, run := range a.scheduler.History(task.Name) {
		if run.MessageID == "" {
			continue
		}
		_, err := b.Message(context.Background(), cmp.Or(task.Queue, m.opts.Registry.Queue), run.MessageID)
		return err == nil
	}
	return false
}

// Known reports whether the registry has the scheduled run of that id, with the path that its
// message goes to. The error is [ErrUndecided] while it is not known whether there is a registry.
func (m *Manager) Known(ctx context.Context, id, path string) (bool, error) {
	return m.registry.known(ctx, id, path)
}
