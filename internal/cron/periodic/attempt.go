package periodic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

// call runs f in a goroutine, even after ctx ends, because the outcome of an interrupted call would be unknown. The
// caller must hold mu.
func (s *Scheduler) call(ctx context.Context, f func(context.Context)) {
	s.work.Go(func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.CallTimeout)
		defer cancel()
		f(limited)
	})
}

const maxSkipped = 1000

// startAttempt skips the first maxSkipped slots if there is a reason, and otherwise enqueues the only one. The caller
// must hold mu.
func (s *Scheduler) startAttempt(ctx context.Context, e *entry, slots []Slot, reason Reason) {
	e.busy = true
	s.busy++
	a := attempt{term: s.term, reason: reason,
		checkElsewhere: e.task.Overlap == SkipOverlap && reason == "" && s.opts.RunningElsewhere != nil}
	for _, slot := range slots[:min(len(slots), maxSkipped)] {
		a.run = newScheduledRun(&e.task, slot, runID(e.task.Name, slot.ScheduledAt), s.queueOf(&e.task), false)
		if reason != "" {
			a.skipping = append(a.skipping, a.run)
		}
	}

	s.call(ctx, func(ctx context.Context) {
		a.start = s.opts.Wall().Round(0)
		began := time.Now()
		a.err = s.execute(ctx, &a)
		a.took = time.Since(began)
		s.finishAttempt(e, &a)
	})
}

func (s *Scheduler) queueOf(t *Task) string { return cmp.Or(t.Queue, s.opts.Queue) }

type attempt struct {
	run            registry.Run // to enqueue, or the last one to skip
	term           int64
	skipping       []registry.Run // nil to enqueue the run
	reason         Reason
	checkElsewhere bool // skip the run if another instance runs the task
	start          time.Time
	took           time.Duration
	result         registry.EnqueueResult
	records        map[string]registry.RunRecord
	err            error
}

func (s *Scheduler) execute(ctx context.Context, a *attempt) (err error) {
	if term, ok := s.lead.Term(); !ok || term != a.term {
		return queue.ErrStaleTerm
	}

	if a.checkElsewhere {
		running, err := s.opts.RunningElsewhere(ctx, a.run.Task)
		if err != nil {
			return fmt.Errorf("checking whether the previous run has finished: %w", err)
		}
		if running {
			a.skipping = []registry.Run{a.run}
			a.reason = ReasonOverlap
		}
	}

	if a.skipping != nil {
		a.records, err = s.registry.Skip(ctx, a.term, a.skipping)
	} else {
		a.result, err = s.registry.Enqueue(ctx, a.term, a.run)
	}
	return err
}

func (s *Scheduler) finishAttempt(e *entry, a *attempt) {
	s.mu.Lock()
	retry := e.recordResult(a, a.term == s.term)
	s.mu.Unlock()

	s.report(a, retry) // before the next attempt, so that events stay in order

	s.mu.Lock()
	e.busy = false
	s.busy--
	s.mu.Unlock()
	s.wake()
}

func (e *entry) recordResult(a *attempt, currentTerm bool) (retry time.Duration) {
	e.next = Slot{}
	switch {
	case a.err == nil || errors.Is(a.err, registry.ErrUncertain):
		if e.accountedUpTo.Before(a.run.ScheduledAt) {
			e.accountedUpTo = a.run.ScheduledAt
		}
		e.clearFailures()
	case currentTerm:
		retry = backoff(e.failures)
		e.failures++
		e.retryAt = time.Now().Add(retry)
		e.problem = a.err.Error()
	}
	return retry
}

func (e *entry) clearFailures() {
	e.failures = 0
	e.retryAt = time.Time{}
	e.problem = ""
}

func (s *Scheduler) report(a *attempt, retry time.Duration) {
	run := &a.run
	switch {
	case errors.Is(a.err, registry.ErrUncertain):
		call(s.opts.Events.Failed, Failed{Task: run.Task, ID: run.ID, Err: a.err})
		s.recordSkipped(skippedRun(run, s.reasonOfAnnounced(run)))
	case errors.Is(a.err, queue.ErrStaleTerm):
		// If this instance has lost leadership, the loop notices.
		if term, ok := s.lead.Term(); ok && term == a.term && s.refusedTerm.Swap(term) != term {
			call(s.opts.Events.Refused, Refused{Term: term, Err: a.err})
		}
	case a.err != nil:
		call(s.opts.Events.Failed, Failed{Task: run.Task, ID: run.ID, Err: a.err, Retry: retry})
	case a.skipping != nil:
		s.reportSkippedRuns(a)
	case a.result.Already:
		if id := a.result.Sent.ID; id != "" {
			s.history.addEnqueuedBefore(run.Task, run.ScheduledAt, id)
		}
		s.recordSkipped(skippedRun(run, ReasonAlready))
	default:
		s.recordEnqueued(a)
	}
}

func skippedRun(run *registry.Run, reason Reason) Skipped {
	return Skipped{Task: run.Task, From: run.ScheduledAt, To: run.ScheduledAt, Count: 1, Reason: reason}
}

func (s *Scheduler) recordEnqueued(a *attempt) {
	run, sent := &a.run, &a.result
	lateness := max(0, a.start.Sub(run.DueAt))
	s.history.add(Run{Task: run.Task, ScheduledAt: run.ScheduledAt, ID: run.ID, Manual: run.Manual,
		EnqueuedAt: a.start.Add(a.took), Lateness: lateness, MessageID: sent.Sent.ID, Resent: sent.Resent})
	call(s.opts.Events.Enqueued, Enqueued{Task: run.Task, ID: run.ID, Queue: run.Queue, MessageID: sent.Sent.ID,
		ScheduledAt: run.ScheduledAt, Lateness: lateness, Manual: run.Manual, Resent: sent.Resent})
}

func (s *Scheduler) reportSkippedRuns(a *attempt) {
	var merged []Skipped
	for i := range a.skipping {
		run := &a.skipping[i]
		reason := s.skipReason(a, run)
		if n := len(merged) - 1; n >= 0 && merged[n].Reason == reason {
			merged[n].To = run.ScheduledAt
			merged[n].Count++
			continue
		}
		merged = append(merged, skippedRun(run, reason))
	}

	for _, one := range merged {
		s.recordSkipped(one)
	}
}

func (s *Scheduler) skipReason(a *attempt, run *registry.Run) Reason {
	switch record := a.records[run.ID]; {
	case record.MessageID != "":
		s.history.addEnqueuedBefore(run.Task, run.ScheduledAt, record.MessageID)
		return ReasonAlready
	case record.Tries > 0:
		return s.reasonOfAnnounced(run)
	}
	return a.reason
}

func (s *Scheduler) reasonOfAnnounced(run *registry.Run) Reason {
	if s.history.hasMessage(run.Task, run.ScheduledAt) {
		return ReasonAlready
	}
	return ReasonUncertain
}

func (s *Scheduler) recordSkipped(runs Skipped) {
	if runs.Reason != ReasonAlready {
		s.history.add(Run{Task: runs.Task, ScheduledAt: runs.To, ID: runID(runs.Task, runs.To), Skipped: runs.Reason})
	}
	call(s.opts.Events.Skipped, runs)
}

func backoff(failures int) time.Duration { return min(firstRetry<<min(failures, 10), longestRetry) }
