package limit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestWithoutLimitsEverythingPasses(t *testing.T) {
	t.Parallel()
	l := New(nil)
	for range 10_000 {
		if ok, wait, reason := l.Allow(noon, 1); !ok || wait != 0 || reason != "" {
			t.Fatalf("refused: %s %s", reason, wait)
		}
	}
	if got, why := l.Room(noon, 0); got < 1_000_000 || why != "" {
		t.Errorf("room for %d only: %q", got, why)
	}
	if got, want := l.Status(), (Status{InWork: 10_000}); got != want {
		t.Errorf("status %+v, want %+v", got, want)
	}
}

// TestRefusalTakesNothing: whichever limit says no, the others are as before.
func TestRefusalTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{Rate: 10, Batch: 10, Adaptive: &Adaptive{Start: 2, Max: 2}, Breaker: &Breaker{}})
		r.want("")
		r.want("")
		for range 50 {
			r.want("concurrency 0s")
		}
		if got, _ := r.Room(time.Now(), 0); got != 0 {
			t.Errorf("room for %d where none is free", got)
		}
		r.end(success, 0)
		r.end(success, 0)
		r.deliver(8, broken) // 50 refusals cost none of the 10 that were saved up
		r.state(StateOpen)   // 8 of 10
		for range 50 {
			if got := r.begin(); got[:7] != "breaker" {
				t.Fatalf("answer %q", got)
			}
		}
		time.Sleep(5 * time.Second)
		r.Allow(time.Now(), 10) // all that is saved up, and the trial
		r.wantLastEvent("breaker half-open: trials 1")
		r.Done(time.Now(), queue.Result{Outcome: queue.Unreached}, 0)
		for range 9 {
			r.Done(time.Now(), queue.Result{Outcome: queue.Unreached}, 0)
		}
		for range 50 {
			r.want("rate 100ms")
		}
		time.Sleep(100 * time.Millisecond)
		r.want("") // the trial is still free
		if got, want := r.Status().Refused, (Refused{Breaker: 50, Concurrency: 50, Rate: 50}); got != want {
			t.Errorf("refused %+v, want %+v", got, want)
		}
	})
}

// heardLast compares what was told last.
func (r *harness) wantLastEvent(want string) {
	r.t.Helper()
	if n := len(r.events); n == 0 || r.events[n-1] != want {
		r.t.Fatalf("told %q, want %q at the end", r.events, want)
	}
}

func TestDoneWithoutAllowIsHarmless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{Rate: 1, Adaptive: &Adaptive{Start: 2, Max: 2}, Breaker: &Breaker{MinRequests: 1}})
		for _, res := range []queue.Result{broken, success, unreached, cutOff} {
			for range 20 {
				r.end(res, time.Hour)
			}
		}
		r.state(StateClosed)
		r.want("")
		r.want("rate 1s")
		r.end(success, 0)
		r.end(success, 0)
		r.end(success, 0)
		if got := r.Status(); got.InWork != 0 {
			t.Errorf("status %+v", got)
		}
	})
}

func TestNothingAskedIsNothingTaken(t *testing.T) {
	t.Parallel()
	l := New(&Options{Rate: 1, Adaptive: &Adaptive{Max: 1}})
	for _, n := range []int{0, -1} {
		if ok, _, reason := l.Allow(noon, n); !ok {
			t.Errorf("Allow(%d): refused for %q", n, reason)
		}
	}
	if ok, _, reason := l.Allow(noon, 1); !ok {
		t.Errorf("refused for %q", reason)
	}
}

func TestRoom(t *testing.T) {
	t.Parallel()
	opened := func(r *harness) { r.deliver(10, broken) }
	for _, tt := range []struct {
		name    string
		opts    Options
		prepare func(r *harness)
		d       time.Duration
		want    int
		why     string
	}{
		{"rate: saved up", Options{Rate: 100}, nil, 0, 10, ReasonRate},
		{"rate: and to come", Options{Rate: 100}, nil, 2 * time.Second, 210, ReasonRate},
		{"rate: a slow one", Options{Rate: 0.5}, func(r *harness) { r.want("") }, time.Second, 0, ReasonRate},
		{"rate: a slow one later", Options{Rate: 0.5}, func(r *harness) { r.want("") }, 2 * time.Second, 1, ReasonRate},
		{"rate: in debt", Options{Rate: 1}, func(r *harness) { r.Allow(time.Now(), 10) }, 5 * time.Second, 0, ReasonRate},
		{"rate: a past time", Options{Rate: 100}, nil, -time.Hour, 10, ReasonRate},
		{"concurrency: free", Options{Adaptive: &Adaptive{Start: 7}}, nil, time.Hour, 7, ReasonConcurrency},
		{"concurrency: in use", Options{Adaptive: &Adaptive{Start: 7}}, func(r *harness) { r.want(""); r.want("") }, time.Hour, 5, ReasonConcurrency},
		{"concurrency: turning over", Options{Adaptive: &Adaptive{Start: 7}}, func(r *harness) { r.deliver(1, success) }, 10 * time.Millisecond, 77, ReasonConcurrency},
		{"concurrency: full but turning over", Options{Adaptive: &Adaptive{Start: 1}},
			func(r *harness) { r.deliver(1, success); r.want("") }, 10 * time.Millisecond, 10, ReasonConcurrency},
		{"concurrency: batches", Options{Batch: 10, Adaptive: &Adaptive{Start: 7}}, func(r *harness) { r.Allow(time.Now(), 1) }, 0, 60, ReasonConcurrency},
		{"concurrency: batches that nobody named", Options{Adaptive: &Adaptive{Start: 7}}, func(r *harness) { r.Allow(time.Now(), 10); r.Allow(time.Now(), 1) }, 0, 50, ReasonConcurrency},
		{"breaker: closed", Options{Breaker: &Breaker{}}, nil, 0, unlimited, ""},
		{"breaker: open", Options{Breaker: &Breaker{}}, opened, 4 * time.Second, 0, ReasonBreaker},
		{"breaker: open, but not for long", Options{Breaker: &Breaker{Trials: 2}}, opened, 5 * time.Second, 2, ReasonBreaker},
		{"breaker: a trial", Options{Breaker: &Breaker{}}, func(r *harness) { opened(r); time.Sleep(5 * time.Second); r.want("") }, time.Hour, 0, ReasonBreaker},
		{"breaker: slow start", Options{Breaker: &Breaker{}}, func(r *harness) { opened(r); time.Sleep(5 * time.Second); r.deliver(3, success) }, 0, 3, ReasonConcurrency},
		{"the least", Options{Rate: 40, Adaptive: &Adaptive{Start: 7}, Breaker: &Breaker{}}, nil, 0, 4, ReasonRate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, tt.opts)
				if tt.prepare != nil {
					tt.prepare(r)
				}
				if got, why := r.Room(time.Now(), tt.d); got != tt.want || why != tt.why {
					t.Errorf("room for %d because of %q, want %d because of %q", got, why, tt.want, tt.why)
				}
			})
		})
	}
}

// TestWhatTheAdaptiveLimitLearnsFrom: an app that turns requests away at once must
// not pass for a fast one, and one that hangs must pass for a slow one.
func TestWhatTheAdaptiveLimitLearnsFrom(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		res   queue.Result
		took  time.Duration
		moves bool
	}{
		{"success", success, 100 * time.Millisecond, true},
		{"fast failure", broken, time.Millisecond, false},
		{"fast refusal", queue.Result{Status: 429}, time.Millisecond, false},
		{"slow failure", broken, time.Second, true},
		{"time-out", queue.Result{}, time.Second, true},
		{"unreached", unreached, time.Second, false},
		{"cut off", cutOff, time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, Options{Adaptive: &Adaptive{Start: 10}})
				deliver := func(n int, res queue.Result, took time.Duration) {
					for range n {
						r.want("")
						time.Sleep(took)
						r.end(res, took)
					}
				}
				deliver(1, success, 100*time.Millisecond)
				r.events = nil
				deliver(200, tt.res, tt.took)
				if moved := len(r.events) > 0; moved != tt.moves {
					t.Errorf("told %q; want a move: %v", r.events, tt.moves)
				}
			})
		})
	}
}

func TestEventsReadWell(t *testing.T) {
	t.Parallel()
	for want, event := range map[string]fmt.Stringer{
		"breaker open: 6 of 10 deliveries failed, trial in 5s": Opened{Failures: 6, Deliveries: 10, Delay: 5 * time.Second},
		"breaker open: a trial failed, next in 10s":            Opened{Failures: 1, Deliveries: 1, Again: true, Delay: 10 * time.Second},
		"breaker half-open: trials 3":                          HalfOpened{Trials: 3},
		"breaker closed after 1m0s":                            Closed{After: time.Minute},
		"concurrency 9, was 10":                                LimitChanged{From: 10, To: 9},
	} {
		if got := event.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		(&Events{}).call(event) // nobody listens
	}
}
