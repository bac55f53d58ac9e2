package periodic

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/registry"
	"tendril/queue"
)

type sweep struct {
	*node
	nth     int
	applied bool
	dies    bool
	refusal error // instead of a lost response
}

func (s *sweep) call(ctx context.Context, apply func() error) error {
	s.nth--
	if s.nth != 0 {
		return apply()
	}
	if s.applied {
		_ = apply()
	}
	if s.dies {
		s.kill()
	}
	if s.refusal != nil {
		return s.refusal
	}
	return errLost
}

func (s *sweep) Swap(ctx context.Context, fence registry.Fence, changes ...registry.Change) (stored []registry.Record,
	err error) {
	err = s.call(ctx, func() (err error) { stored, err = s.node.Swap(ctx, fence, changes...); return err })
	return stored, err
}

func (s *sweep) Send(ctx context.Context, q string, m queue.Outgoing) (sent queue.Sent, err error) {
	err = s.call(ctx, func() (err error) { sent, err = s.node.Send(ctx, q, m); return err })
	return sent, err
}

func TestEverySingleFault(t *testing.T) {
	t.Parallel()
	for _, queueName := range []string{"jobs", "jobs.fifo"} {
		for n := 1; n <= 4; n++ {
			for bits := range 4 {
				applied, dies := bits&1 != 0, bits&2 != 0
				t.Run(fmt.Sprintf("%s/call %d, applied %v, dies %v", queueName, n, applied, dies), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { singleFault(t, queueName, n, applied, dies) })
				})
			}
		}
	}
}

func singleFault(t *testing.T, queueName string, n int, applied, dies bool) {
	w := newFleet()
	first := &sweep{node: &node{fleet: w}, nth: n, applied: applied, dies: dies}
	w.elect(first.node)
	now := time.Now().UTC().Truncate(time.Second)
	f := newScheduledRun(&Task{Name: "t", URL: "/t"}, Slot{ScheduledAt: now, DueAt: now}, runID("t", now), queueName,
		false)
	c := registry.NewSentRuns(first, scope, first, first.node)
	answer, err := c.Enqueue(t.Context(), w.term, f)
	for i := 0; err != nil && !dies && i < 3; i++ {
		answer, err = c.Enqueue(t.Context(), w.term, f)
	}
	next := &node{fleet: w}
	w.elect(next)
	again, err2 := registry.NewSentRuns(next, scope, next, next).Enqueue(t.Context(), w.term, f)
	if err2 != nil || !dies && err != nil {
		t.Fatalf("%v, then %v", err, err2)
	}
	got := len(w.queues[queueName])
	// Only a lost response, or a crash between sending and settling, causes a duplicate.
	most := 1
	if !queue.IsFIFO(queueName) && (n == 2 && applied || n == 3 && dies && !applied) {
		most = 2
	}
	if got != most || !again.Already && !dies {
		t.Errorf("%d messages, want %d; first %+v, %v; next %+v", got, most, answer, err, again)
	}
	if most == 2 && !answer.Resent && !again.Resent {
		t.Errorf("the double is not told: %+v, %+v", answer, again)
	}
}

// Two leaders crash between sending and settling. The third sends once more and settles the run.
func TestEachLeaderHasATry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := newFleet(), time.Now().UTC().Truncate(time.Second)
		f := newScheduledRun(&Task{Name: "t", URL: "/t"}, Slot{ScheduledAt: now, DueAt: now}, "t", "jobs", false)
		for i := range 2 { // the second leader makes one more call
			s := &sweep{node: &node{fleet: w}, nth: 2 + i, applied: true, dies: true}
			w.elect(s.node)
			if _, err := registry.NewSentRuns(s, scope, s, s.node).Enqueue(t.Context(), w.term, f); err == nil {
				t.Fatal("no error")
			}
		}
		last := &node{fleet: w}
		w.elect(last)
		if answer, err := registry.NewSentRuns(last, scope, last, last).Enqueue(t.Context(), w.term, f); err != nil || !answer.Resent {
			t.Errorf("third leader: %+v, %v", answer, err)
		}
		if n := len(w.queues["jobs"]); n != 3 {
			t.Errorf("%d messages", n)
		}
	})
}

func TestThirdTryIsUncertain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := newFleet(), time.Now().UTC().Truncate(time.Second)
		n := &node{fleet: w}
		w.elect(n)
		f := newScheduledRun(&Task{Name: "t", URL: "/t"}, Slot{ScheduledAt: now, DueAt: now}, "t", "jobs", false)
		s := &sweep{node: n, applied: true}
		c := registry.NewSentRuns(n, scope, s, n)
		for range 2 {
			s.nth = 1
			if _, err := c.Enqueue(t.Context(), w.term, f); err == nil || errors.Is(err, registry.ErrUncertain) {
				t.Fatalf("a send without an answer: %v", err)
			}
		}
		if _, err := c.Enqueue(t.Context(), w.term, f); !errors.Is(err, registry.ErrUncertain) || len(w.queues["jobs"]) != 2 {
			t.Errorf("third try: %v; %d messages", err, len(w.queues["jobs"]))
		}
	})
}

func TestRefusedSendsAreRepeated(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{registry.ErrNotSent, fmt.Errorf("dialling: %w", registry.ErrNotSent), queue.ErrThrottled,
		queue.ErrDenied} {
		synctest.Test(t, func(t *testing.T) {
			w, now := newFleet(), time.Now().UTC().Truncate(time.Second)
			n := &node{fleet: w}
			w.elect(n)
			f := newScheduledRun(&Task{Name: "t", URL: "/t"}, Slot{ScheduledAt: now, DueAt: now}, "t", "jobs", false)
			s := &sweep{node: n, refusal: refusal}
			c := registry.NewSentRuns(n, scope, s, n)
			for range 10 {
				s.nth = 1
				if _, err := c.Enqueue(t.Context(), w.term, f); !errors.Is(err, refusal) {
					t.Fatalf("error %v", err)
				}
			}
			if answer, err := c.Enqueue(t.Context(), w.term, f); err != nil || answer.Resent || len(w.queues["jobs"]) != 1 {
				t.Errorf("%+v, %v, %d messages", answer, err, len(w.queues["jobs"]))
			}
		})
	}
}

func TestFIFOIsNotSentAgainAfterItsWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := newFleet(), time.Now().UTC().Truncate(time.Second)
		n := &node{fleet: w}
		w.elect(n)
		f := newScheduledRun(&Task{Name: "t", URL: "/t"}, Slot{ScheduledAt: now, DueAt: now}, "t", "jobs.fifo", false)
		s := &sweep{node: n, nth: 1, applied: true}
		c := registry.NewSentRuns(n, scope, s, n)
		for range 20 {
			s.nth = 1
			if _, err := c.Enqueue(t.Context(), w.term, f); err == nil {
				t.Fatal("no error")
			}
			time.Sleep(15 * time.Second)
		}
		if _, err := c.Enqueue(t.Context(), w.term, f); !errors.Is(err, registry.ErrUncertain) {
			t.Errorf("after 5 minutes: %v", err)
		}
		if got := len(w.queues["jobs.fifo"]); got != 1 {
			t.Errorf("%d messages", got)
		}
	})
}

func TestNothingIsSentWithoutLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := newFleet(), time.Now()
		n := &node{fleet: w}
		w.elect(n)
		f := newScheduledRun(&Task{Name: "t", URL: "/t"}, Slot{ScheduledAt: now, DueAt: now}, "t", "jobs", false)
		losing := losesLead{n}
		if _, err := registry.NewSentRuns(losing, scope, n, n).Enqueue(t.Context(), w.term, f); !errors.Is(err, queue.ErrStaleTerm) ||
			len(w.queues) != 0 {
			t.Errorf("%v, queues %v", err, w.queues)
		}
		f.Manual = true
		if _, err := registry.NewSentRuns(n, scope, n, n).Enqueue(t.Context(), 0, f); err != nil || len(w.queues["jobs"]) != 1 {
			t.Errorf("by hand, without the lead: %v, queues %v", err, w.queues)
		}
	})
}

type losesLead struct{ *node }

func (l losesLead) Swap(ctx context.Context, fence registry.Fence, changes ...registry.Change) ([]registry.Record, error) {
	stored, err := l.node.Swap(ctx, fence, changes...)
	l.elect(nil)
	return stored, err
}
