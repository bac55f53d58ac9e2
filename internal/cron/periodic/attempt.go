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
	a := attempt{term: s.term, skip: reason,
		checkElsewhere: e.task.Overlap == SkipOverlap && reason == "" && s.opts.RunningElsewhere != nil}
	for _, slot := range slots[:min(len(slots), maxSkipped)] {
		id := runID(e.task.Name, slot.ScheduledAt)
		a.runs = append(a.runs, newScheduledRun(&e.task, slot, id, s.queueOf(&e.task), false))
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
	runs           []registry.Run // one to enqueue, or at least one to skip
	term           int64
	skip           Reason // "" to enqueue the run
	checkElsewhere bool   // skip the run if another instance runs the task
	start          time.Time
	took           time.Duration
	result         registry.EnqueueResult
	records        map[string]registry.RunRecord
	err            error
}

func (a *attempt) last() *registry.Run { return &a.runs[len(a.runs)-1] }

func (s *Scheduler) execute(ctx context.Context, a *attempt) (err error) {
	if term, ok := s.lead.Term(); !ok || term != a.term {
		return queue.ErrStaleTerm
	}

	if a.checkElsewhere {
		running, err := s.opts.RunningElsewhere(ctx, a.last().Task)
		if err != nil {
			return fmt.Errorf("checking whether the previous run has finished: %w", err)
		}
		if running {
			a.skip = ReasonOverlap
		}
	}

	if a.skip != "" {
		a.records, err = s.registry.Skip(ctx, a.term, a.runs)
	} else {
		a.result, err = s.registry.Enqueue(ctx, a.term, a.runs[0])
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
	switch {
	case a.err == nil || errors.Is(a.err, registry.ErrUncertain):
		e.setAccountedUpTo(later(e.accountedUpTo, a.last().ScheduledAt))
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
	run := a.last()
	switch {
	case errors.Is(a.err, registry.ErrUncertain):
		reason := s.reasonOfAnnounced(run)
		if reason == ReasonUncertain {
			call(s.opts.Events.Failed, Failed{Task: run.Task, ID: run.ID, Err: a.err})
		}
		s.recordSkipped(skippedRun(run, reason))
	case errors.Is(a.err, queue.ErrStaleTerm):
		// If this instance has lost leadership, the loop notices.
		if term, ok := s.lead.Term(); ok && term == a.term && s.refusedTerm.Swap(term) != term {
			call(s.opts.Events.Refused, Refused{Term: term, Err: a.err})
		}
	case a.err != nil:
		call(s.opts.Events.Failed, Failed{Task: run.Task, ID: run.ID, Err: a.err, Retry: retry})
	case a.skip != "":
		s.reportSkippedRuns(a)
	case a.result.Already:
		if id := a.result.Sent.ID; id != "" {
			s.history.addEnqueuedBefore(run.Task, run.ScheduledAt, id)
		}
		s.recordSkipped(skippedRun(run, ReasonAlready))
	default:
		s.recordEnqueued(run, &a.result, a.start, a.took)
	}
}

func skippedRun(run *registry.Run, reason Reason) Skipped {
	return Skipped{Task: run.Task, From: run.ScheduledAt, To: run.ScheduledAt, Count: 1, Reason: reason}
}

func (s *Scheduler) recordEnqueued(run *registry.Run, r *registry.EnqueueResult, start time.Time, took time.Duration) {
	lateness := max(0, start.Sub(run.DueAt))
	s.history.add(Run{Task: run.Task, ScheduledAt: run.ScheduledAt, ID: run.ID, Manual: run.Manual,
		EnqueuedAt: start.Add(took), Lateness: lateness, MessageID: r.Sent.ID, Resent: r.Resent})
	call(s.opts.Events.Enqueued, Enqueued{Task: run.Task, ID: run.ID, Queue: run.Queue, MessageID: r.Sent.ID,
		ScheduledAt: run.ScheduledAt, Lateness: lateness, Manual: run.Manual, Resent: r.Resent})
}

func (s *Scheduler) reportSkippedRuns(a *attempt) {
	var merged []Skipped
	for i := range a.runs {
		run := &a.runs[i]
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
	return a.skip
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
