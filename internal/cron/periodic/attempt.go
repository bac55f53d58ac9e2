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

// call runs f in the background. f continues after ctx ends, because the outcome of an interrupted call would be
// unknown. The caller must hold mu.
func (s *Scheduler) call(ctx context.Context, f func(context.Context)) {
	s.work.Go(func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.CallTimeout)
		defer cancel()
		f(limited)
	})
}

const maxSkipped = 1000

// begin enqueues the only slot, or skips all slots for a reason. The caller must hold mu.
func (s *Scheduler) begin(ctx context.Context, e *entry, slots []Slot, reason Reason) {
	e.busy = true
	s.busy++
	a := attempt{term: s.term, reason: reason,
		alone: e.task.Overlap == SkipOverlap && reason == "" && s.opts.RunningElsewhere != nil}
	for _, slot := range slots[:min(len(slots), maxSkipped)] {
		a.run = newScheduledRun(&e.task, slot, runID(e.task.Name, slot.ScheduledAt), s.queueOf(&e.task), false)
		if reason != "" {
			a.out = append(a.out, a.run)
		}
	}

	s.call(ctx, func(ctx context.Context) {
		a.start = s.opts.Wall().Round(0)
		began := time.Now()
		a.err = s.effect(ctx, &a)
		a.took = time.Since(began)
		s.settle(e, a)
	})
}

func (s *Scheduler) queueOf(t *Task) string { return cmp.Or(t.Queue, s.opts.Queue) }

type attempt struct {
	run    registry.Run // to enqueue, or the last one to skip
	term   int64
	out    []registry.Run // to skip; nil to enqueue
	reason Reason
	alone  bool // skip the run if the task runs elsewhere
	start  time.Time
	took   time.Duration
	answer registry.EnqueueResult
	found  map[string]registry.RunRecord
	err    error
}

// effect first checks that this instance is still the leader.
func (s *Scheduler) effect(ctx context.Context, a *attempt) (err error) {
	if term, ok := s.lead.Term(); !ok || term != a.term {
		return queue.ErrStaleTerm
	}

	if a.alone {
		running, err := s.opts.RunningElsewhere(ctx, a.run.Task)
		if err != nil {
			return fmt.Errorf("checking whether the previous run has finished: %w", err)
		}
		if running {
			a.out, a.reason = []registry.Run{a.run}, ReasonOverlap
		}
	}

	if a.out != nil {
		a.found, err = s.registry.Skip(ctx, a.term, a.out)
	} else {
		a.answer, err = s.registry.Enqueue(ctx, a.term, a.run)
	}
	return err
}

func (s *Scheduler) settle(e *entry, a attempt) {
	var retry time.Duration
	s.mu.Lock()
	e.next = Slot{}
	if a.err == nil || errors.Is(a.err, registry.ErrUncertain) {
		if e.since.Before(a.run.ScheduledAt) {
			e.since = a.run.ScheduledAt
		}
		e.failures = 0
		e.retryAt = time.Time{}
		e.problem = ""
	} else {
		retry = backoff(e.failures)
		e.failures++
		e.retryAt, e.problem = time.Now().Add(retry), a.err.Error()
	}
	s.mu.Unlock()

	s.report(a, retry) // so that events stay in order
	s.mu.Lock()
	e.busy = false
	s.busy--
	s.mu.Unlock()
	s.wake()
}

func (s *Scheduler) report(a attempt, retry time.Duration) {
	one := Skipped{Task: a.run.Task, From: a.run.ScheduledAt, To: a.run.ScheduledAt, Count: 1}

	switch {
	case errors.Is(a.err, registry.ErrUncertain):
		call(s.opts.Events.Failed, Failed{Task: a.run.Task, ID: a.run.ID, Err: a.err})
		one.Reason = ReasonUncertain
		s.skipped(one)
	case errors.Is(a.err, queue.ErrStaleTerm):
		// If this instance has lost leadership, the loop notices.
		if term, ok := s.lead.Term(); ok && term == a.term && s.refusedTerm.Swap(term) != term {
			call(s.opts.Events.Refused, Refused{Term: term, Err: a.err})
		}
	case a.err != nil:
		call(s.opts.Events.Failed, Failed{Task: a.run.Task, ID: a.run.ID, Err: a.err, Retry: retry})
	case a.out != nil:
		s.leftOut(a)
	case a.answer.Already:
		if id := a.answer.Sent.ID; id != "" {
			s.history.already(one.Task, one.To, id)
		}
		one.Reason = ReasonAlready
		s.skipped(one)
	default:
		s.enqueued(a)
	}
}

func (s *Scheduler) enqueued(a attempt) {
	f, late := a.run, max(0, a.start.Sub(a.run.DueAt))
	s.history.add(Run{Task: f.Task, ScheduledAt: f.ScheduledAt, ID: f.ID, Manual: f.Manual,
		EnqueuedAt: a.start.Add(a.took), Lateness: late, MessageID: a.answer.Sent.ID, Resent: a.answer.Resent})
	call(s.opts.Events.Enqueued, Enqueued{Task: f.Task, ID: f.ID, Queue: f.Queue, MessageID: a.answer.Sent.ID,
		ScheduledAt: f.ScheduledAt, Lateness: late, Manual: f.Manual, Resent: a.answer.Resent})
}

// leftOut merges adjacent runs with the same reason. Runs with a record may have been enqueued.
func (s *Scheduler) leftOut(a attempt) {
	var all []Skipped
	for _, f := range a.out {
		one := Skipped{Task: f.Task, From: f.ScheduledAt, To: f.ScheduledAt, Count: 1, Reason: a.reason}
		record := a.found[f.ID]
		if record.Tries > 0 && record.MessageID == "" { // perhaps delivered by this instance
			record.MessageID = s.history.messageOf(one.Task, one.To)
		}

		switch {
		case record.MessageID != "":
			s.history.already(one.Task, one.To, record.MessageID)
			one.Reason = ReasonAlready
		case record.Tries > 0:
			one.Reason = ReasonUncertain
		}

		if n := len(all) - 1; n >= 0 && all[n].Reason == one.Reason {
			all[n].To, all[n].Count = one.To, all[n].Count+1
		} else {
			all = append(all, one)
		}
	}

	for _, one := range all {
		s.skipped(one)
	}
}

// skipped adds only the latest time to the history.
func (s *Scheduler) skipped(out Skipped) {
	if out.Reason != ReasonAlready {
		s.history.add(Run{Task: out.Task, ScheduledAt: out.To, ID: runID(out.Task, out.To), Skipped: out.Reason})
	}
	call(s.opts.Events.Skipped, out)
}

func backoff(failures int) time.Duration { return min(firstRetry<<min(failures, 10), longestRetry) }
