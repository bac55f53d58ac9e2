package environment

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

// TestDrainForDeparture: the group waits until not only the work, but everything
// that is stopped before the membership has ended.
func TestDrainForDeparture(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &Environment{draining: make(chan struct{}), drained: make(chan struct{})}
		m := &membership{}
		m.open(&fleet{e: e})
		done := make(chan error, 1)
		go func() { done <- m.drain(m.keep) }()
		synctest.Wait()
		if !e.stopping() || !m.departing.Load() {
			t.Error("the environment should be stopping")
		}
		e.finishDrain(nil)
		synctest.Wait()
		if len(done) > 0 {
			t.Error("the group was let go before the end")
		}
		left := make(chan struct{})
		go func() { m.leave(t.Context()); close(left) }()
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		select {
		case <-left:
			t.Error("the membership ended before the group was told")
		default:
		}
		close(m.departed)
		<-left
		if m.keep.Err() == nil {
			t.Error("the protection should end with the membership")
		}
	})
}

// TestLeaveInTime: a group that cannot be told holds up the stop no longer than
// the stop may take.
func TestLeaveInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &membership{}
		m.open(&fleet{e: &Environment{}})
		m.departing.Store(true)
		m.all.Go(func() { <-m.keep.Done() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		m.leave(ctx)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestMemberCount(t *testing.T) {
	t.Parallel()
	m := &membership{}
	m.open(&fleet{e: &Environment{report: &report{quiet: true, log: discard()}}})
	slow, none := errors.New("no answer"), stranger{&queue.Error{Code: queue.CodeResourceNotFound, Message: "in no group"}}
	m.learn(member{}, slow)
	if n, err := m.count(t.Context()); n != 0 || !errors.Is(err, slow) || m.settled() || m.problem() != "no answer" {
		t.Errorf("without an answer: %d, %v, settled %t", n, err, m.settled())
	}
	m.learn(member{}, none)
	if n, err := m.count(t.Context()); n != 1 || err != nil || !m.settled() || m.problem() != "in no group" {
		t.Errorf("outside of groups: %d, %v, settled %t, %q", n, err, m.settled(), m.problem())
	}
	for err, want := range map[error]bool{slow: false, none.error: true} {
		if got := errors.As(final(err), &stranger{}); got != want {
			t.Errorf("%v is final: %t", err, got)
		}
	}
}
