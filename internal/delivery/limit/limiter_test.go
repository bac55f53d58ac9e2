package limit

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestWithoutLimitsEverythingPasses(t *testing.T) {
	t.Parallel()
	l := New(nil)
	for range 10_000 {
		if permit, wait, reason := l.Acquire(noon, 1); permit == 0 || wait != 0 || reason != "" {
			t.Fatalf("refused: %s %s", reason, wait)
		}
	}
	if got, reason := l.Room(noon, 0); got < 1_000_000 || reason != "" {
		t.Errorf("room for %d only: %q", got, reason)
	}
	if got, want := l.Status(), (Status{InWork: 10_000}); got != want {
		t.Errorf("status %+v, want %+v", got, want)
	}
}

func TestRefusalConsumesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Rate: 10, Batch: 10, Concurrency: 2, Adaptive: true, Breaker: &Breaker{}})
		h.wantAllow("")
		h.wantAllow("")
		for range 50 {
			h.wantAllow("concurrency 0s")
		}
		if got, _ := h.Room(time.Now(), 0); got != 0 {
			t.Errorf("room for %d, want none", got)
		}
		h.done(success, 0)
		h.done(success, 0)
		h.deliver(8, serverError) // none of the burst of 10 is used up
		h.wantState(stateOpen)
		for range 50 {
			if got := h.allow(); got[:7] != "breaker" {
				t.Fatalf("answer %q", got)
			}
		}
		time.Sleep(5 * time.Second)
		permit, _, _ := h.Acquire(time.Now(), 10) // the whole burst, and the trial
		h.wantLastEvent("breaker half-open: one delivery on trial")
		h.Release(permit, time.Now(), slices.Repeat([]queue.Result{unreached}, 10)...)
		for range 50 {
			h.wantAllow("rate 100ms")
		}
		time.Sleep(100 * time.Millisecond)
		h.wantAllow("")
		if got, want := h.Status().Refused, (Refused{Breaker: 50, Concurrency: 50, Rate: 50}); got != want {
			t.Errorf("refused %+v, want %+v", got, want)
		}
	})
}

func TestSecondReleaseIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Rate: 1, Concurrency: 2, Adaptive: true, Breaker: &Breaker{}})
		permit, _, _ := h.Acquire(time.Now(), 1)
		for _, res := range []queue.Result{success, serverError, unreached, canceled} {
			for range 20 {
				h.Release(permit, time.Now(), res)
			}
		}
		h.wantState(stateClosed)
		h.wantAllow("rate 1s")
		time.Sleep(time.Second)
		h.wantAllow("")
		h.Release(permit, time.Now(), success)
		if got := h.Status(); got.InWork != 1 {
			t.Errorf("status %+v", got)
		}
	})
}

func TestDeliveriesThatStartTogetherEndInAnyOrder(t *testing.T) {
	t.Parallel()
	l := New(&Options{Adaptive: true})
	first, _, _ := l.Acquire(noon, 3)
	second, _, _ := l.Acquire(noon, 1)
	l.Release(second, noon, success)
	if got := l.Status().InWork; got != 1 {
		t.Errorf("%d in work after the end of one, want 1", got)
	}
	l.Release(first, noon, success, success, success)
	if got := l.Status().InWork; got != 0 {
		t.Errorf("%d in work at the end", got)
	}
}

func TestRoom(t *testing.T) {
	t.Parallel()
	open := func(h *harness) { h.deliver(10, serverError) }
	openUntilTrial := func(h *harness) { open(h); time.Sleep(5 * time.Second) }
	for _, tt := range []struct {
		name    string
		opts    Options
		prepare func(h *harness)
		d       time.Duration
		want    int
		reason  string
	}{
		{"rate: burst", Options{Rate: 100}, nil, 0, 10, reasonRate},
		{"rate: burst and more to come", Options{Rate: 100}, nil, 2 * time.Second, 210, reasonRate},
		{"rate: below one per second", Options{Rate: 0.5}, func(h *harness) { h.wantAllow("") }, time.Second, 0, reasonRate},
		{"rate: below one per second, longer", Options{Rate: 0.5},
			func(h *harness) { h.wantAllow("") }, 2 * time.Second, 1, reasonRate},
		{"rate: borrowed", Options{Rate: 1}, func(h *harness) { h.Acquire(time.Now(), 10) }, 5 * time.Second, 0, reasonRate},
		{"rate: negative duration", Options{Rate: 100}, nil, -time.Hour, 10, reasonRate},
		{"concurrency: all free", Options{Concurrency: 7, Adaptive: true}, nil, time.Hour, 7, reasonConcurrency},
		{"concurrency: some in work", Options{Concurrency: 7, Adaptive: true},
			func(h *harness) { h.wantAllow(""); h.wantAllow("") }, time.Hour, 5, reasonConcurrency},
		{"concurrency: free now and later", Options{Concurrency: 7, Adaptive: true},
			func(h *harness) { h.deliver(1, success) }, 10 * time.Millisecond, 77, reasonConcurrency},
		{"concurrency: free later only", Options{Concurrency: 1, Adaptive: true},
			func(h *harness) { h.deliver(1, success); h.wantAllow("") }, 10 * time.Millisecond, 10, reasonConcurrency},
		{"concurrency: batches", Options{Batch: 10, Concurrency: 7, Adaptive: true},
			func(h *harness) { h.Acquire(time.Now(), 1) }, 0, 60, reasonConcurrency},
		{"concurrency: larger batches than configured", Options{Concurrency: 7, Adaptive: true},
			func(h *harness) { h.Acquire(time.Now(), 10); h.Acquire(time.Now(), 1) }, 0, 50, reasonConcurrency},
		{"breaker: closed", Options{Breaker: &Breaker{}}, nil, 0, unlimited, ""},
		{"breaker: open", Options{Breaker: &Breaker{}}, open, 4 * time.Second, 0, reasonBreaker},
		{"breaker: trial within the duration", Options{Breaker: &Breaker{}}, open, 5 * time.Second, 1, reasonBreaker},
		{"breaker: trial running", Options{Breaker: &Breaker{}},
			func(h *harness) { openUntilTrial(h); h.wantAllow("") }, time.Hour, 0, reasonBreaker},
		{"breaker: trial running and no place free", Options{Concurrency: 1, Adaptive: true, Breaker: &Breaker{}},
			func(h *harness) { openUntilTrial(h); h.wantAllow("") }, 0, 0, reasonBreaker},
		{"breaker: slow start", Options{Breaker: &Breaker{}},
			func(h *harness) { openUntilTrial(h); h.deliver(3, success) }, 0, 3, reasonConcurrency},
		{"the strictest limit", Options{Rate: 40, Concurrency: 7, Adaptive: true, Breaker: &Breaker{}},
			nil, 0, 4, reasonRate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, tt.opts)
				if tt.prepare != nil {
					tt.prepare(h)
				}
				if got, reason := h.Room(time.Now(), tt.d); got != tt.want || reason != tt.reason {
					t.Errorf("room for %d, reason %q; want %d, reason %q", got, reason, tt.want, tt.reason)
				}
			})
		})
	}
}

func TestAdaptiveLimitLearnsFromSuccessesAndSlowFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		res   queue.Result
		took  time.Duration
		moves bool
	}{
		{"success", success, 100 * time.Millisecond, true},
		{"fast failure", serverError, time.Millisecond, false},
		{"fast rejection", queue.Result{Status: 429}, time.Millisecond, false},
		{"failure that takes as long as a success", serverError, 100 * time.Millisecond, true},
		{"slow failure", serverError, time.Second, true},
		{"timeout", queue.Result{}, time.Second, true},
		{"unreached", unreached, time.Second, false},
		{"canceled", canceled, time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, Options{Adaptive: true})
				deliver := func(n int, res queue.Result, took time.Duration) {
					for range n {
						h.wantAllow("")
						time.Sleep(took)
						h.done(res, took)
					}
				}
				deliver(1, success, 100*time.Millisecond)
				h.events = nil
				deliver(200, tt.res, tt.took)
				if moved := len(h.events) > 0; moved != tt.moves {
					t.Errorf("events %q; want a changed limit: %v", h.events, tt.moves)
				}
			})
		})
	}
}

func TestAdaptiveLimitLearnsNothingFromFailuresBeforeTheFirstSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Adaptive: true})
		for range 200 {
			h.wantAllow("")
			time.Sleep(time.Second)
			h.done(serverError, time.Second)
		}
		h.wantEvents()
	})
}

// Each delivery moves the mean duration by 1/32 of its difference.
func TestRoomFollowsTheMeanDuration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{Concurrency: 1, Adaptive: true})
		h.deliver(1, success)
		h.wantAllow("")
		time.Sleep(33 * time.Millisecond)
		h.done(success, 33*time.Millisecond)
		if got, _ := h.Room(time.Now(), 10*time.Millisecond); got != 6 {
			t.Errorf("room for %d, want 6: one now and one each 2 ms", got)
		}
	})
}

func TestEventsMayHaveNoListeners(t *testing.T) {
	t.Parallel()
	var none Events
	var d deferredEvents
	notify(&d, none.Opened, Opened{})
	notify(&d, none.HalfOpened, HalfOpened{})
	notify(&d, none.Closed, Closed{})
	notify(&d, none.LimitChanged, Resized{})
	if len(d) > 0 {
		t.Errorf("%d calls of no listener", len(d))
	}
}
