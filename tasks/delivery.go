package tasks

import (
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
