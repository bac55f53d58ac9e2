package fleet

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestGroupWaitsForTheWholeStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drained := make(chan error)
		m := newMember(Options{Drain: func(context.Context) error { return <-drained }}, nil)
		done := make(chan error, 1)
		go func() { done <- m.drain(m.run) }()
		synctest.Wait()
		if !m.terminating.Load() {
			t.Error("the drain should have begun")
		}
		drained <- nil
		synctest.Wait()
		if len(done) > 0 {
			t.Error("the group was released before the end")
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
		close(m.completed)
		<-left
		if m.run.Err() == nil {
			t.Error("the protection should end with the membership")
		}
	})
}

func TestLeaveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMember(Options{}, nil)
		m.terminating.Store(true)
		m.all.Go(func() { <-m.run.Done() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		m.leave(ctx)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestCountOutsideOfGroups(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := newMember(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, nil)
	slow, none := errors.New("no answer"),
		notAMember{&queue.Error{Code: queue.CodeResourceNotFound, Message: "in no group"}}
	m.recordAttempt(identity{}, slow)
	if n, err := m.countInstances(t.Context()); n != 0 || !errors.Is(err, slow) || m.settled || m.problem() != "no answer" {
		t.Errorf("without an answer: %d, %v, settled %t", n, err, m.settled)
	}
	m.recordAttempt(identity{}, none)
	if n, err := m.countInstances(t.Context()); n != 1 || err != nil || !m.settled || m.problem() != "in no group" {
		t.Errorf("outside of groups: %d, %v, settled %t, %q", n, err, m.settled, m.problem())
	}
	m.recordAttempt(identity{}, none)
	for _, once := range []string{"level=WARN msg=\"Auto Scaling group of this instance not read yet, trying again",
		"level=INFO msg=\"instances not counted"} {
		if n := strings.Count(log.String(), once); n != 1 {
			t.Errorf("the log is %s, want each reason once", log.String())
		}
	}
	log.Reset()
	m.opts.Group = "workers"
	m.logNoMembership(none, true)
	if !strings.Contains(log.String(), "level=WARN msg=\"instance not found in any Auto Scaling group") {
		t.Errorf("with a configured group, the log is %s", log.String())
	}
	for err, want := range map[error]bool{slow: false, none.error: true} {
		if got := errors.As(permanentIfMissing(err), &notAMember{}); got != want {
			t.Errorf("%v is final: %t", err, got)
		}
	}
}
