package limit

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

var (
	success       = queue.Result{Outcome: queue.Done, Status: 200}
	serverError   = queue.Result{Status: 500}
	rejected      = queue.Result{Status: 400}
	unreached     = queue.Result{Outcome: queue.Unreached, Err: io.EOF}
	canceled      = queue.Result{Err: context.Canceled}
	functionError = queue.Result{Status: 200, Fault: true}
	unsent        = queue.Result{Unsent: true, Err: io.EOF}
)

type harness struct {
	*Limiter
	t      *testing.T
	events []string
	inWork []permitInWork
}

type permitInWork struct {
	startedAt time.Time
	permit    uint64
}

func newHarness(t *testing.T, opts Options) *harness {
	h := &harness{t: t}
	record := func(event any) {
		h.Status()
		h.events = append(h.events, eventText(event))
	}
	opts.Events = &Events{
		Opened: func(e Opened) { record(e) }, HalfOpened: func(e HalfOpened) { record(e) },
		Closed: func(e Closed) { record(e) }, LimitChanged: func(e Resized) { record(e) },
	}
	h.Limiter = New(&opts)
	return h
}

func eventText(event any) string {
	switch e := event.(type) {
	case Opened:
		if e.TrialFailed {
			return fmt.Sprintf("breaker open: the trial failed, next in %s", e.Delay)
		}
		return fmt.Sprintf("breaker open: %d of %d deliveries failed, trial in %s", e.Failures, e.Deliveries, e.Delay)
	case HalfOpened:
		return "breaker half-open: one delivery on trial"
	case Closed:
		return fmt.Sprintf("breaker closed after %s", e.After)
	case Resized:
		return fmt.Sprintf("concurrency %d, was %d", e.To, e.From)
	}
	return ""
}

func (h *harness) allow() string {
	h.t.Helper()
	permit, wait, reason := h.Acquire(time.Now(), 1)
	if permit != 0 {
		h.inWork = append(h.inWork, permitInWork{time.Now(), permit})
		if wait != 0 || reason != "" {
			h.t.Errorf("allowed, with a wait of %s and reason %q", wait, reason)
		}
		return ""
	}
	return fmt.Sprint(reason, " ", wait)
}

func (h *harness) wantAllow(answer string) {
	h.t.Helper()
	if got := h.allow(); got != answer {
		h.t.Fatalf("answer %q, want %q", got, answer)
	}
}

func (h *harness) done(res queue.Result, took time.Duration) {
	h.t.Helper()
	startedAt := time.Now().Add(-took)
	i := slices.IndexFunc(h.inWork, func(p permitInWork) bool { return p.startedAt.Equal(startedAt) })
	if i < 0 {
		h.t.Fatalf("no delivery in work started %s ago", took)
	}
	h.Release(h.inWork[i].permit, time.Now(), res)
	h.inWork = slices.Delete(h.inWork, i, i+1)
}

func (h *harness) deliver(n int, res queue.Result) {
	h.t.Helper()
	for range n {
		h.wantAllow("")
		time.Sleep(time.Millisecond)
		h.done(res, time.Millisecond)
	}
}

func (h *harness) wantEvents(want ...string) {
	h.t.Helper()
	if got := strings.Join(h.events, "\n"); got != strings.Join(want, "\n") {
		h.t.Fatalf("events:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	h.events = nil
}

func (h *harness) wantLastEvent(want string) {
	h.t.Helper()
	if n := len(h.events); n == 0 || h.events[n-1] != want {
		h.t.Fatalf("events %q, want %q at the end", h.events, want)
	}
}

func (h *harness) wantState(want string) {
	h.t.Helper()
	if got := h.Status().Breaker; got != want {
		h.t.Fatalf("breaker %s, want %s", got, want)
	}
}

func TestBreakerOpensAtTheFailureRatio(t *testing.T) {
	t.Parallel()
	type results struct {
		n   int
		res queue.Result
	}
	for _, tt := range []struct {
		name    string
		opts    Breaker
		results []results
		want    string
	}{
		{"too few deliveries", Breaker{}, []results{{9, serverError}}, stateClosed},
		{"just enough deliveries", Breaker{}, []results{{10, serverError}}, stateOpen},
		{"half fail", Breaker{}, []results{{5, success}, {5, serverError}}, stateOpen},
		{"less than half fail", Breaker{}, []results{{6, success}, {5, serverError}}, stateClosed},
		{"a tenth is enough", Breaker{FailureRatio: 0.1}, []results{{9, success}, {1, serverError}}, stateOpen},
		{"all must fail", Breaker{FailureRatio: 1}, []results{{1, success}, {99, serverError}}, stateClosed},
		{"rejected messages", Breaker{}, []results{{100, rejected}}, stateClosed},
		{"a function that fails", Breaker{}, []results{{10, functionError}}, stateOpen},
		{"never sent", Breaker{}, []results{{100, unsent}}, stateClosed},
		{"never sent does not count", Breaker{}, []results{{100, unsent}, {10, serverError}}, stateOpen},
		{"rejected counts as answered", Breaker{}, []results{{6, rejected}, {5, serverError}}, stateClosed},
		{"unreached", Breaker{}, []results{{100, unreached}}, stateClosed},
		{"unreached does not count", Breaker{}, []results{{100, unreached}, {10, serverError}}, stateOpen},
		{"canceled", Breaker{}, []results{{100, canceled}}, stateClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, Options{Breaker: &tt.opts})
				for _, r := range tt.results {
					h.deliver(r.n, r.res)
				}
				h.wantState(tt.want)
			})
		})
	}
}

func TestFailuresOutsideTheWindowAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Breaker: &Breaker{}})
		h.deliver(9, serverError)
		time.Sleep(31 * time.Second)
		h.deliver(9, serverError)
		h.wantState(stateClosed)
		h.deliver(1, serverError)
		h.wantState(stateOpen)
	})
}

func TestOpenBreakerAllowsOneTrialAndThenASlowStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Concurrency: 4, Breaker: &Breaker{}})
		h.deliver(10, serverError)
		h.wantEvents("breaker open: 10 of 10 deliveries failed, trial in 5s")
		h.wantAllow("breaker 5s")
		if at := h.Status().TrialAt; time.Until(at) != 5*time.Second {
			t.Errorf("trial in %s", time.Until(at))
		}
		time.Sleep(5*time.Second - 1)
		h.wantAllow("breaker 1ns")
		time.Sleep(time.Nanosecond)
		h.wantEvents()
		h.wantAllow("")
		h.wantEvents("breaker half-open: one delivery on trial")
		h.wantAllow("breaker 0s")
		time.Sleep(time.Second)
		h.done(success, time.Second)
		h.wantEvents("breaker closed after 6s")

		for slowStart := 1; slowStart < 4; slowStart++ {
			if got := h.Status().SlowStart; got != slowStart {
				t.Fatalf("slow start at %d, want %d", got, slowStart)
			}
			for range slowStart {
				h.wantAllow("")
			}
			h.wantAllow("concurrency 0s")
			time.Sleep(time.Millisecond)
			h.done(success, time.Millisecond)
			for range slowStart - 1 {
				h.done(unreached, time.Millisecond)
			}
		}
		if got := h.Status(); got.SlowStart != 0 || got.InWork != 0 {
			t.Fatalf("after the slow start: %+v", got)
		}
		for range 100 {
			h.wantAllow("")
		}
		if got, want := h.Status().Refused, (Refused{Breaker: 3, Concurrency: 3}); got != want {
			t.Errorf("refused %+v, want %+v", got, want)
		}
	})
}

func TestFailureHalvesTheSlowStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Breaker: &Breaker{}})
		h.deliver(10, serverError)
		time.Sleep(5 * time.Second)
		h.deliver(6, success)
		for _, want := range []int{3, 1, 1} {
			h.deliver(1, serverError)
			if got := h.Status().SlowStart; got != want {
				t.Errorf("slow start at %d, want %d", got, want)
			}
		}
	})
}

func TestFailedTrialDoublesTheDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Concurrency: 3, Breaker: &Breaker{Delay: 10 * time.Second}})
		h.deliver(10, serverError)
		opened := time.Now()
		for _, delay := range []string{"20s", "40s", "1m0s", "1m0s"} {
			time.Sleep(time.Until(h.Status().TrialAt))
			h.events = nil
			h.deliver(1, serverError)
			h.wantEvents("breaker half-open: one delivery on trial", "breaker open: the trial failed, next in "+delay)
		}
		failing := time.Since(opened)
		time.Sleep(time.Minute)
		h.deliver(1, success)
		h.wantLastEvent("breaker closed after " + (failing + time.Minute + time.Millisecond).String())
		h.deliver(1, success)
		h.deliver(9, serverError)
		h.wantAllow("breaker 1m0s")
		time.Sleep(time.Minute)
		h.deliver(3, success)
		h.deliver(8, serverError)
		h.wantAllow("breaker 10s")
	})
}

func TestDelayAboveTheMaximumStaysAsConfigured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Breaker: &Breaker{Delay: 2 * time.Minute}})
		h.deliver(10, serverError)
		h.wantAllow("breaker 2m0s")
		time.Sleep(2 * time.Minute)
		h.deliver(1, serverError)
		h.wantAllow("breaker 2m0s")
	})
}

func TestDelayIsResetByTheTrialWhereOneDeliveryRunsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Concurrency: 1, Breaker: &Breaker{}})
		h.deliver(10, serverError)
		time.Sleep(5 * time.Second)
		h.deliver(1, success)
		if got := h.Status().SlowStart; got != 0 {
			t.Errorf("slow start at %d", got)
		}
		h.deliver(10, serverError)
		h.wantAllow("breaker 5s")
	})
}

func TestSuccessesStartNoSlowStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Breaker: &Breaker{}})
		h.deliver(3, success)
		if got := h.Status().SlowStart; got != 0 {
			t.Errorf("slow start at %d", got)
		}
	})
}

func TestResultOfTheTrialDecides(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		res  queue.Result
		want string
	}{
		{"success", success, stateClosed},
		{"rejected", rejected, stateClosed},
		{"server error", serverError, stateOpen},
		{"unreached", unreached, stateHalfOpen},
		{"canceled", canceled, stateHalfOpen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, Options{Breaker: &Breaker{}})
				h.deliver(10, serverError)
				time.Sleep(5 * time.Second)
				h.wantAllow("")
				h.wantState(stateHalfOpen)
				h.wantAllow("breaker 0s")
				h.done(tt.res, 0)
				h.wantState(tt.want)
				if tt.want != stateHalfOpen {
					return
				}
				h.wantAllow("")
				h.wantAllow("breaker 0s")
				h.done(success, 0)
				h.wantState(stateClosed)
			})
		})
	}
}

func TestResultsFromBeforeTheOpeningAreNotTrials(t *testing.T) {
	t.Parallel()
	for _, late := range []queue.Result{success, serverError, unreached} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, Options{Breaker: &Breaker{}})
			start := time.Now()
			for range 3 {
				h.wantAllow("")
			}
			time.Sleep(time.Second)
			h.deliver(10, serverError)
			h.done(late, time.Since(start))
			h.wantState(stateOpen)
			time.Sleep(5 * time.Second)
			h.wantAllow("")
			time.Sleep(time.Second)
			h.done(late, time.Since(start))
			h.wantState(stateHalfOpen)
			h.wantAllow("breaker 0s")
			h.done(success, time.Second)
			h.wantState(stateClosed)
			h.done(late, time.Since(start))
			h.wantState(stateClosed)
			if got := h.Status(); got.SlowStart != 1 || got.InWork != 0 {
				t.Errorf("after a late result: %+v", got)
			}
		})
	}
}

func TestHangingDeliveriesFromBeforeDoNotCountInTheSlowStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Breaker: &Breaker{}})
		for range 20 {
			h.wantAllow("")
		}
		time.Sleep(time.Second)
		h.deliver(10, serverError)
		time.Sleep(5 * time.Second)
		h.deliver(3, success)
		if got := h.Status(); got.SlowStart != 3 || got.InWork != 20 {
			t.Errorf("with 20 hanging: %+v", got)
		}
	})
}

func TestBatchCountsAsOneDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Breaker: &Breaker{}})
		batch := func(results ...queue.Result) {
			permit, _, reason := h.Acquire(time.Now(), len(results))
			if permit == 0 {
				t.Fatal(reason)
			}
			if got := h.Status().InWork; got != 1 {
				t.Errorf("a batch counts as %d", got)
			}
			time.Sleep(time.Millisecond)
			h.Release(permit, time.Now(), results...)
		}
		for range 3 {
			batch(serverError, serverError, serverError, serverError, serverError)
		}
		batch(serverError, success, serverError)
		batch(serverError, rejected)
		h.deliver(4, success)
		h.wantState(stateClosed)
		if got := h.Status().Failing; got != 0.33 {
			t.Errorf("failing %v, want 0.33", got)
		}
		for range 3 {
			batch(unreached, serverError)
		}
		h.wantState(stateOpen)
	})
}
