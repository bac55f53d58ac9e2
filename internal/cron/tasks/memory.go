package tasks

import (
	"context"
	"sync"
	"time"

	"tendril/internal/cron/periodic"
	"tendril/queue"
)

// memoryRetention is how long records of runs are kept in memory.
const memoryRetention = 48 * time.Hour

// memoryRuns keeps the records of the only instance. After a restart it begins anew: runs
// that were due meanwhile are not made up for.
type memoryRuns struct {
	mu      sync.Mutex
	tasks   map[string]queue.TaskTimes
	records map[string]memoryRecord
}

type memoryRecord struct {
	periodic.Claim
	at   time.Time
	path string
}

func newMemoryRuns() *memoryRuns {
	return &memoryRuns{tasks: map[string]queue.TaskTimes{}, records: map[string]memoryRecord{}}
}

// Since implements [periodic.Store]. Schedules need not be compared: a task of another
// schedule is one of another process, or was asked for from its start on.
func (s *memoryRuns) Since(_ context.Context, _ int64, starts map[string]periodic.Start) (
	map[string]queue.TaskTimes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[string]queue.TaskTimes, len(starts))
	for task, start := range starts {
		times, old := s.tasks[task]
		if !old {
			times.UpTo = start.At
		}
		if !old || start.At.Before(times.From) {
			times.From = start.At
		}
		s.tasks[task], known[task] = times, times
	}
	return known, nil
}

// Claim implements [periodic.Store].
func (s *memoryRuns) Claim(_ context.Context, term int64, run periodic.ScheduledRun, try int) (periodic.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.records {
		if run.ScheduledAt.Sub(r.at) > memoryRetention {
			delete(s.records, id)
		}
	}
	r := s.records[run.ID]
	if !r.Settled && r.Tries == try-1 {
		r.Tries, r.Term, r.at, r.path = try, term, run.ScheduledAt, run.Path
		s.records[run.ID] = r
	}
	return r.Claim, nil
}

// Mark implements [periodic.Store].
func (s *memoryRuns) Mark(_ context.Context, _ int64, run periodic.ScheduledRun, messageID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[run.ID]
	if !r.Settled {
		r.Settled, r.MessageID, r.at = true, messageID, run.ScheduledAt
		s.records[run.ID] = r
	}
	if times := s.tasks[run.Task]; !run.Manual && times.UpTo.Before(run.ScheduledAt) {
		times.UpTo = run.ScheduledAt
		s.tasks[run.Task] = times
	}
	return nil
}

// Records implements [periodic.Store].
func (s *memoryRuns) Records(_ context.Context, runs []periodic.ScheduledRun) (map[string]periodic.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := map[string]periodic.Claim{}
	for i := range runs {
		if r, ok := s.records[runs[i].ID]; ok {
			records[runs[i].ID] = r.Claim
		}
	}
	return records, nil
}

// Known reports whether this process enqueued a run for this path.
func (s *memoryRuns) Known(_ context.Context, id, path string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[id]
	return r.Tries > 0 && r.path == path, nil
}
