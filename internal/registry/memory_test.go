package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/registry"
	"tendril/internal/registry/registrytest"
	"tendril/queue"
)

type sender struct {
	lose, sends int
	err         error
}

func (s *sender) Send(context.Context, string, queue.Outgoing) (queue.Sent, error) {
	s.sends++
	if s.sends <= s.lose {
		return queue.Sent{}, s.err
	}
	return queue.Sent{ID: fmt.Sprint("m-", s.sends)}, nil
}

type always int64

func (a always) Term() (int64, bool) { return int64(a), true }

func TestMemoryIsARegistry(t *testing.T) {
	t.Parallel()
	store, s := registry.NewMemory(), &sender{}
	leases := registry.NewLeases(store)
	registrytest.Leases(t, func(testing.TB) registrytest.LeaseStore { return leases })
	registrytest.Runs(t, func(_ testing.TB, scope registry.Scope) registrytest.Registry {
		return registry.NewSentRuns(store, scope, s, following{leases, scope.Lease})
	}, leases)
}

type following struct {
	leases *registry.Leases
	lease  string
}

func (f following) Term() (int64, bool) {
	if f.lease == "" {
		return 0, true
	}
	l, err := f.leases.Read(context.Background(), f.lease)
	return l.Term, err == nil && !l.Released
}

// A restarted process has a new term and does not know whether the run was sent.
func TestRunsOfAnOnlyInstanceAfterARestart(t *testing.T) {
	t.Parallel()
	s := &sender{lose: 1, err: errors.New("connection reset by the test")}
	store := registry.NewMemory()
	term := int64(0)
	enqueue := func(run registry.Run) (registry.EnqueueResult, error) {
		term++
		return registry.NewSentRuns(store, registry.Scope{Name: "jobs"}, s, always(term)).Enqueue(t.Context(), term, run)
	}
	run := registrytest.Run("audit", 1)
	if _, err := enqueue(run); err == nil {
		t.Fatal("the answer was lost, and it is enqueued")
	}
	second, err := enqueue(run)
	if err != nil || second.Already || !second.Resent || second.Sent.ID != "m-2" {
		t.Errorf("after a restart: %+v, %v; want it sent again and reported", second, err)
	}
	third, err := enqueue(run)
	if err != nil || !third.Already || third.Sent.ID != "m-2" || s.sends != 2 {
		t.Errorf("after another: %+v, %v with %d sends; want it settled", third, err, s.sends)
	}

	fifo := registrytest.Run("audit", 2)
	fifo.Queue, fifo.DueAt, s.lose = "jobs.fifo", time.Now().Add(-10*time.Minute), 3
	if _, err := enqueue(fifo); err == nil {
		t.Fatal("the answer was lost, and it is enqueued")
	}
	if _, err := enqueue(fifo); !errors.Is(err, registry.ErrUncertain) || s.sends != 3 {
		t.Errorf("on FIFO after a restart: %v with %d sends; want it left as it is", err, s.sends)
	}
}

// After a broken connection, unlike a failed dial, the message may have been sent.
func TestAFailedDialIsRepeatedWithinOneTry(t *testing.T) {
	t.Parallel()
	for err, most := range map[error]int{
		fmt.Errorf("sending: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}): 11,
		fmt.Errorf("sending: %w", &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}):   2,
	} {
		s := &sender{lose: 10, err: err}
		runs := registry.NewSentRuns(registry.NewMemory(), registry.Scope{}, s, always(1))
		for range 11 {
			_, err = runs.Enqueue(t.Context(), 1, registrytest.Run("audit", 1))
		}
		if s.sends != most || errors.Is(err, registry.ErrUncertain) != (most == 2) {
			t.Errorf("%d sends, want %d; the last error is %v", s.sends, most, err)
		}
	}
}

func TestSkipFindsAnnouncedTries(t *testing.T) {
	t.Parallel()
	store := registry.NewMemory()
	lost := &sender{lose: 1, err: errors.New("connection reset by the test")}
	runs := []registry.Run{registrytest.Run("audit", 1), registrytest.Run("audit", 2)}
	if _, err := registry.NewSentRuns(store, registry.Scope{}, lost, always(1)).Enqueue(t.Context(), 1, runs[0]); err == nil {
		t.Fatal("the answer was lost, and it is enqueued")
	}
	next := registry.NewSentRuns(store, registry.Scope{}, lost, always(2))
	found, err := next.Skip(t.Context(), 2, runs)
	if want := (registry.RunRecord{Tries: 1, Term: 1}); err != nil || found[runs[0].ID] != want || len(found) != 1 {
		t.Errorf("found %+v, %v; want %+v", found, err, want)
	}
	if _, err := next.Enqueue(t.Context(), 2, runs[1]); err != nil || lost.sends != 1 {
		t.Errorf("a run that was left out is sent: %v, %d sends", err, lost.sends)
	}
}

type slowSender struct{ meanwhile func() }

func (s slowSender) Send(context.Context, string, queue.Outgoing) (queue.Sent, error) {
	s.meanwhile()
	return queue.Sent{ID: "m-1"}, nil
}

func TestLateResponseReplacesTheSkip(t *testing.T) {
	t.Parallel()
	store := registry.NewMemory()
	run := registrytest.Run("audit", 1)
	next := registry.NewSentRuns(store, registry.Scope{}, &sender{}, always(2))
	slow := slowSender{meanwhile: func() {
		if _, err := next.Skip(t.Context(), 2, []registry.Run{run}); err != nil {
			t.Error(err)
		}
	}}
	if _, err := registry.NewSentRuns(store, registry.Scope{}, slow, always(1)).Enqueue(t.Context(), 1, run); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second skip keeps the message
		found, err := next.Skip(t.Context(), 2, []registry.Run{run})
		if want := (registry.RunRecord{Tries: 1, Term: 1, Settled: true, MessageID: "m-1"}); err != nil || found[run.ID] != want {
			t.Errorf("found %+v, %v; want %+v", found, err, want)
		}
	}
	if again, err := next.Enqueue(t.Context(), 2, run); err != nil || !again.Already || again.Sent.ID != "m-1" {
		t.Errorf("enqueued again: %+v, %v", again, err)
	}
}

func TestRunsOfOlderVersionsAreKnownWithAnyPath(t *testing.T) {
	t.Parallel()
	store := registry.NewMemory()
	absent := registry.Record{Kind: registry.KindRun, Key: "audit@1"}
	sent := absent.With(registry.Fields{"tries": int64(1), "settled": true, "message": "m"})
	if _, err := store.Swap(t.Context(), registry.Fence{}, registry.Change{Old: absent, Next: sent}); err != nil {
		t.Fatal(err)
	}
	runs := registry.NewSentRuns(store, registry.Scope{}, &sender{}, always(1))
	if known, err := runs.Known(t.Context(), "audit@1", "/any"); !known || err != nil {
		t.Errorf("known %v, %v", known, err)
	}
}

func TestMemoryForgetsOldRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := registry.NewSentRuns(registry.NewMemory(), registry.Scope{}, &sender{}, always(1))
		enqueue := func(n int) registry.Run {
			t.Helper()
			run := registrytest.Run("audit", n)
			if _, err := runs.Enqueue(t.Context(), 1, run); err != nil {
				t.Fatal(err)
			}
			return run
		}
		first := enqueue(1)
		if known, _ := runs.Known(t.Context(), first.ID, first.Path); !known {
			t.Error("the run is not known")
		}
		time.Sleep(72 * time.Hour)
		enqueue(2)
		if known, _ := runs.Known(t.Context(), first.ID, first.Path); known {
			t.Error("records are kept for ever")
		}
		times, err := runs.Since(t.Context(), 1, map[string]registry.Start{"audit": {At: first.ScheduledAt}})
		if err != nil || times["audit"].UpTo.IsZero() {
			t.Errorf("the task is forgotten: %v, %v", times, err)
		}
	})
}

func TestLeasesRejectInvalidFields(t *testing.T) {
	t.Parallel()
	leases := registry.NewLeases(registry.NewMemory())
	good := queue.Lease{Version: "a", Term: 1}
	with := func(change func(l *queue.Lease)) queue.Lease {
		l := good
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		key  string
		next queue.Lease
	}{
		"no name":       {"", good},
		"long name":     {strings.Repeat("x", 513), good},
		"negative term": {"l", with(func(l *queue.Lease) { l.Term = -1 })},
		"negative time": {"l", with(func(l *queue.Lease) { l.Duration = -1 })},
		"not UTF-8":     {"l", with(func(l *queue.Lease) { l.Owner = "\xff" })},
		"zero byte":     {"l", with(func(l *queue.Lease) { l.Data = "a\x00b" })},
		"long data":     {"l", with(func(l *queue.Lease) { l.Data = strings.Repeat("x", 16<<10+1) })},
	} {
		_, _, err := leases.Swap(t.Context(), c.key, queue.Lease{}, c.next)
		if refusal := (&queue.Error{Code: queue.CodeInvalidParameterValue}); !errors.Is(err, refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := leases.Read(t.Context(), ""); err == nil {
		t.Error("a lease without a name was read")
	}
	if got, err := leases.Read(t.Context(), "l"); got != (queue.Lease{}) || err != nil {
		t.Errorf("stored is %+v, %v", got, err)
	}
}
