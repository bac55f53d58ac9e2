package limit

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

// The results that the tests speak of.
var (
	success   = queue.Result{Outcome: queue.Done, Status: 200}
	broken    = queue.Result{Status: 500}
	poison    = queue.Result{Status: 400}
	unreached = queue.Result{Outcome: queue.Unreached, Err: io.EOF}
	cutOff    = queue.Result{Err: context.Canceled}
	fault     = queue.Result{Status: 200, Fault: true}
	unsent    = queue.Result{Unsent: true, Err: io.EOF}
)

// rig is a limiter in virtual time, and what it told.
type harness struct {
	*Limiter
	t      *testing.T
	events []string
}

func newHarness(t *testing.T, opts Options) *harness {
	r := &harness{t: t}
	tell := func(event fmt.Stringer) {
		r.Status() // a listener may ask
		r.events = append(r.events, event.String())
	}
	opts.Events = &Events{
		Opened: func(e Opened) { tell(e) }, HalfOpened: func(e HalfOpened) { tell(e) },
		Closed: func(e Closed) { tell(e) }, LimitChanged: func(e LimitChanged) { tell(e) },
	}
	r.Limiter = New(&opts)
	return r
}

// begin asks for one delivery and reports the answer as "", or as the reason and
// the wait.
func (r *harness) begin() string {
	r.t.Helper()
	ok, wait, reason := r.Allow(time.Now(), 1)
	if ok {
		if wait != 0 || reason != "" {
			r.t.Errorf("allowed, with a wait of %s and reason %q", wait, reason)
		}
		return ""
	}
	return fmt.Sprint(reason, " ", wait)
}

// want begins one delivery and compares the answer.
func (r *harness) want(answer string) {
	r.t.Helper()
	if got := r.begin(); got != answer {
		r.t.Fatalf("answer %q, want %q", got, answer)
	}
}

// end ends a delivery that began took ago.
func (r *harness) end(res queue.Result, took time.Duration) { r.Done(time.Now(), res, took) }

// deliver makes n deliveries of a millisecond, one after the other.
func (r *harness) deliver(n int, res queue.Result) {
	r.t.Helper()
	for range n {
		r.want("")
		time.Sleep(time.Millisecond)
		r.end(res, time.Millisecond)
	}
}

// heard compares what was told since the last call.
func (r *harness) wantEvents(want ...string) {
	r.t.Helper()
	if got := strings.Join(r.events, "\n"); got != strings.Join(want, "\n") {
		r.t.Fatalf("told:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	r.events = nil
}

func (r *harness) state(want State) {
	r.t.Helper()
	if got := r.Status().Breaker; got != want {
		r.t.Fatalf("breaker %s, want %s", got, want)
	}
}

func TestBreakerOpensOnAShareOfFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		opts    Breaker
		results map[string]int // in the order of the names
		want    State
	}{
		{"too few", Breaker{}, map[string]int{"broken": 9}, StateClosed},
		{"just enough", Breaker{}, map[string]int{"broken": 10}, StateOpen},
		{"half", Breaker{}, map[string]int{"a success": 5, "broken": 5}, StateOpen},
		{"less than half", Breaker{}, map[string]int{"a success": 6, "broken": 5}, StateClosed},
		{"a tenth", Breaker{Share: 0.1}, map[string]int{"a success": 9, "broken": 1}, StateOpen},
		{"all needed", Breaker{Share: 1}, map[string]int{"a success": 1, "broken": 99}, StateClosed},
		{"few needed", Breaker{MinRequests: 2}, map[string]int{"broken": 2}, StateOpen},
		{"poison", Breaker{}, map[string]int{"poison": 100}, StateClosed},
		{"a function that fails", Breaker{}, map[string]int{"fault": 10}, StateOpen},
		{"never sent", Breaker{}, map[string]int{"unsent": 100}, StateClosed},
		{"never sent counts for nothing", Breaker{}, map[string]int{"a unsent": 100, "broken": 10}, StateOpen},
		{"poison counts as answered", Breaker{}, map[string]int{"a poison": 6, "broken": 5}, StateClosed},
		{"unreached", Breaker{}, map[string]int{"unreached": 100}, StateClosed},
		{"unreached do not dilute", Breaker{}, map[string]int{"a unreached": 100, "broken": 10}, StateOpen},
		{"cut off", Breaker{}, map[string]int{"cut off": 100}, StateClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, Options{Breaker: &tt.opts})
				for _, name := range []string{"a success", "a poison", "a unreached", "a unsent", "unsent", "fault", "poison", "unreached", "cut off", "broken"} {
					res := map[string]queue.Result{"success": success, "poison": poison, "unreached": unreached, "cut off": cutOff, "broken": broken, "unsent": unsent, "fault": fault}[strings.TrimPrefix(name, "a ")]
					r.deliver(tt.results[name], res)
				}
				r.state(tt.want)
			})
		})
	}
}

func TestOldFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{Breaker: &Breaker{}})
		r.deliver(9, broken)
		time.Sleep(31 * time.Second)
		r.deliver(9, broken)
		r.state(StateClosed)
		r.deliver(1, broken)
		r.state(StateOpen)
	})
}

func TestOpenBreakerAdmitsNoneThenOneTrialThenFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{Concurrency: 4, Breaker: &Breaker{}})
		r.deliver(10, broken)
		r.wantEvents("breaker open: 10 of 10 deliveries failed, trial in 5s")
		r.want("breaker 5s")
		if at := r.Status().TrialAt; time.Until(at) != 5*time.Second {
			t.Errorf("trial in %s", time.Until(at))
		}
		time.Sleep(5*time.Second - 1)
		r.want("breaker 1ns")
		time.Sleep(time.Nanosecond)
		r.wantEvents()
		r.want("")
		r.wantEvents("breaker half-open: trials 1")
		r.want("breaker 0s")
		time.Sleep(time.Second)
		r.end(success, time.Second)
		r.wantEvents("breaker closed after 6s")

		// 1, 2, 3 at once, then no limit any more.
		for slowStartLimit := 1; slowStartLimit < 4; slowStartLimit++ {
			if got := r.Status().SlowStart; got != slowStartLimit {
				t.Fatalf("slow start at %d, want %d", got, slowStartLimit)
			}
			for range slowStartLimit {
				r.want("")
			}
			r.want("concurrency 0s")
			time.Sleep(time.Millisecond)
			r.end(success, time.Millisecond)
			for range slowStartLimit - 1 {
				r.end(unreached, time.Millisecond) // says nothing
			}
		}
		if got := r.Status(); got.SlowStart != 0 || got.InWork != 0 {
			t.Fatalf("after the slow start: %+v", got)
		}
		for range 100 {
			r.want("")
		}
		if got, want := r.Status().Refused, (Refused{Breaker: 3, Concurrency: 3}); got != want {
			t.Errorf("refused %+v, want %+v", got, want)
		}
	})
}

func TestFailureSlowsTheSlowStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{Breaker: &Breaker{}})
		r.deliver(10, broken)
		time.Sleep(5 * time.Second)
		r.deliver(6, success) // the trial, and five that count
		for _, want := range []int{3, 1, 1} {
			r.deliver(1, broken)
			if got := r.Status().SlowStart; got != want {
				t.Errorf("slow start at %d, want %d", got, want)
			}
		}
	})
}

func TestFailedTrialOpensAgainForLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{Concurrency: 3, Breaker: &Breaker{Delay: 10 * time.Second, MaxDelay: 45 * time.Second}})
		r.deliver(10, broken)
		first := time.Now()
		for _, delay := range []string{"20s", "40s", "45s", "45s"} {
			time.Sleep(time.Until(r.Status().TrialAt))
			r.events = nil
			r.deliver(1, broken)
			r.wantEvents("breaker half-open: trials 1", "breaker open: a trial failed, next in "+delay)
		}
		failing := time.Since(first)
		// A success closes it, but only full concurrency makes the app trusted.
		time.Sleep(45 * time.Second)
		r.deliver(1, success)
		r.wantLastEvent("breaker closed after " + (failing + 45*time.Second + time.Millisecond).String())
		r.deliver(1, success)
		r.deliver(9, broken)
		r.want("breaker 45s")
		time.Sleep(45 * time.Second)
		r.deliver(3, success)
		r.deliver(8, broken)
		r.want("breaker 10s")
	})
}

func TestTrials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		results []queue.Result
		want    State
	}{
		{"none ended", nil, StateHalfOpen},
		{"not all", []queue.Result{success, success}, StateHalfOpen},
		{"all", []queue.Result{success, success, success}, StateClosed},
		{"poison is an answer", []queue.Result{poison, poison, poison}, StateClosed},
		{"the first fails", []queue.Result{broken}, StateOpen},
		{"the last fails", []queue.Result{success, success, broken}, StateOpen},
		{"one said nothing", []queue.Result{success, success, unreached}, StateHalfOpen},
		{"one was cut off", []queue.Result{cutOff, success, success}, StateHalfOpen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, Options{Breaker: &Breaker{Trials: 3}})
				r.deliver(10, broken)
				time.Sleep(5 * time.Second)
				for range 3 {
					r.want("")
				}
				r.want("breaker 0s")
				ignored := 0
				for _, res := range tt.results {
					r.end(res, 0)
					if classify(&res) == resultIgnored {
						ignored++
					}
				}
				r.state(tt.want)
				if tt.want != StateHalfOpen {
					return
				}
				for range ignored {
					r.want("") // in the place of the one that proved nothing
				}
				r.want("breaker 0s")
				for range 3 - len(tt.results) + ignored {
					r.end(success, 0)
				}
				r.state(StateClosed)
			})
		})
	}
}

// TestLateResultsAreNoTrials: what began before the opening and ends during the
// trial says nothing about the app of now.
func TestLateResultsAreNoTrials(t *testing.T) {
	t.Parallel()
	for _, late := range []queue.Result{success, broken, unreached} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, Options{Breaker: &Breaker{}})
			began := time.Now()
			for range 3 {
				r.want("")
			}
			time.Sleep(time.Second)
			r.deliver(10, broken)
			r.end(late, time.Since(began))
			r.state(StateOpen)
			time.Sleep(5 * time.Second)
			r.want("")
			time.Sleep(time.Second)
			r.end(late, time.Since(began))
			r.state(StateHalfOpen)
			r.want("breaker 0s")
			r.end(success, time.Second)
			r.state(StateClosed)
			r.end(late, time.Since(began))
			r.state(StateClosed)
			if got := r.Status(); got.SlowStart != 1 || got.InWork != 0 {
				t.Errorf("after a late result: %+v", got)
			}
		})
	}
}

// TestHangingDeliveriesDoNotStopTheSlowStart: they began before it.
func TestHangingDeliveriesDoNotStopTheSlowStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{Breaker: &Breaker{}})
		for range 20 {
			r.want("")
		}
		time.Sleep(time.Second)
		r.deliver(10, broken)
		time.Sleep(5 * time.Second)
		r.deliver(3, success)
		if got := r.Status(); got.SlowStart != 3 || got.InWork != 20 {
			t.Errorf("with 20 hanging: %+v", got)
		}
	})
}

func TestABatchIsOneSample(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{Breaker: &Breaker{MinRequests: 3}})
		batch := func(results ...queue.Result) {
			if ok, _, reason := r.Allow(time.Now(), len(results)); !ok {
				t.Fatal(reason)
			}
			if got := r.Status().InWork; got != 1 {
				t.Errorf("a batch counts as %d", got)
			}
			time.Sleep(time.Millisecond)
			for _, res := range results {
				r.end(res, time.Millisecond)
			}
		}
		batch(broken, broken, broken, broken, broken)
		batch(broken, success, broken)
		batch(broken, poison)
		r.state(StateClosed)
		if got := r.Status().Failing; got != 0.33 {
			t.Errorf("failing %v, want 0.33", got)
		}
		batch(unreached, broken) // 2 of 4
		r.state(StateOpen)
	})
}
