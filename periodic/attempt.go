package periodic

import (
	"context"
	"errors"
	"time"

	"tendril/queue"
)

// call runs f in a goroutine that ends within CallTimeout, also when ctx ends:
// an effect that was begun is better finished than left without a known
// outcome. Called with the lock held.
func (s *Scheduler) call(ctx context.Context, f func(context.Context)) {
	s.work.Go(func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.CallTimeout)
		defer cancel()
		f(limited)
	})
}

// begin enqueues the one slot, or leaves all of them out for a reason that is
// not "". Called with the lock held.
func (s *Scheduler) begin(ctx context.Context, e *entry, slots []Slot, reason Reason) {
	e.busy = true
	s.busy++
	term, last := s.term, slots[len(slots)-1]
	f := s.fire(&e.task, last)
	var out *Skipped
	if reason != "" {
		skipped := skip(e, slots, reason)
		out = &skipped
	}
	s.call(ctx, func(ctx context.Context) {
		a := attempt{fire: f, term: term, out: out, start: s.opts.Wall().Round(0)}
		began := time.Now()
		a.answer, a.err = s.effect(ctx, a)
		a.took = time.Since(began)
		s.settle(e, a)
	})
}

func (s *Scheduler) fire(t *Task, slot Slot) Fire {
	return newFire(t, slot, fireID(t.Name, slot.ScheduledAt), s.queueOf(t), false)
}

func (s *Scheduler) queueOf(t *Task) string {
	if t.Queue != "" {
		return t.Queue
	}
	return s.opts.Queue
}

// attempt is one try to enqueue a run, or to leave some out.
type attempt struct {
	fire   Fire
	term   int64
	out    *Skipped // what is left out; nil when the run is enqueued
	start  time.Time
	took   time.Duration
	answer Enqueued
	err    error
}

// effect asks once more whether this instance leads, and calls the registry.
func (s *Scheduler) effect(ctx context.Context, a attempt) (Enqueued, error) {
	if term, ok := s.lead.Term(); !ok || term != a.term {
		return Enqueued{}, queue.ErrStaleTerm
	}
	if a.out != nil {
		return Enqueued{}, s.registry.Skip(ctx, a.term, a.fire)
	}
	return s.registry.Enqueue(ctx, a.term, a.fire)
}

// settle takes the outcome of an attempt.
func (s *Scheduler) settle(e *entry, a attempt) {
	uncertain := errors.Is(a.err, ErrUncertain)
	var retry time.Duration
	s.mu.Lock()
	e.busy = false
	s.busy--
	e.next = Slot{}
	switch {
	case a.err == nil || uncertain:
		if e.since.Before(a.fire.ScheduledAt) {
			e.since = a.fire.ScheduledAt
		}
		e.failures, e.retryAt = 0, time.Time{}
	default:
		retry = backoff(e.failures)
		e.failures++
		e.retryAt = time.Now().Add(retry)
	}
	s.mu.Unlock()
	s.wake()
	s.report(a, retry)
}

// report tells the listeners and the history.
func (s *Scheduler) report(a attempt, retry time.Duration) {
	one := Skipped{Task: a.fire.Task, From: a.fire.ScheduledAt, To: a.fire.ScheduledAt, Count: 1}
	switch {
	case errors.Is(a.err, ErrUncertain):
		call(s.opts.Events.Failed, Failed{Task: a.fire.Task, ID: a.fire.ID, Err: a.err})
		one.Reason = ReasonUncertain
		s.skipped(one)
	case errors.Is(a.err, queue.ErrStaleTerm):
		// Another instance's turn: the loop sees it by itself.
	case a.err != nil:
		call(s.opts.Events.Failed, Failed{Task: a.fire.Task, ID: a.fire.ID, Err: a.err, Retry: retry})
	case a.out != nil:
		s.skipped(*a.out)
	case a.answer.Already:
		if id := a.answer.Sent.ID; id != "" { // else it had been left out before
			s.history.already(one.Task, one.To, id)
		}
		one.Reason = ReasonAlready
		call(s.opts.Events.Skipped, one)
	default:
		s.fired(a)
	}
}

func (s *Scheduler) fired(a attempt) {
	f, late := a.fire, max(0, a.start.Sub(a.fire.DueAt))
	s.history.add(Run{
		Task: f.Task, ScheduledAt: f.ScheduledAt, ID: f.ID, Manual: f.Manual,
		EnqueuedAt: a.start.Add(a.took), Lateness: late, MessageID: a.answer.Sent.ID, Resent: a.answer.Resent,
	})
	call(s.opts.Events.Fired, Fired{
		Task: f.Task, ID: f.ID, Queue: f.Queue, MessageID: a.answer.Sent.ID, ScheduledAt: f.ScheduledAt,
		Lateness: late, Took: a.took, Manual: f.Manual, Resent: a.answer.Resent,
	})
}

// skipped tells of times that were left out; the history has the last.
func (s *Scheduler) skipped(out Skipped) {
	s.history.add(Run{Task: out.Task, ScheduledAt: out.To, ID: fireID(out.Task, out.To), Skipped: out.Reason})
	call(s.opts.Events.Skipped, out)
}

func skip(e *entry, slots []Slot, reason Reason) Skipped {
	return Skipped{
		Task: e.task.Name, Count: len(slots), Reason: reason,
		From: slots[0].ScheduledAt.UTC(), To: slots[len(slots)-1].ScheduledAt.UTC(),
	}
}

// backoff is the pause after some failures in a row and one more.
func backoff(failures int) time.Duration {
	return min(firstRetry<<min(failures, 10), longestRetry)
}
