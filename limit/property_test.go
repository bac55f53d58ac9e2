package limit

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tendril/queue"
)

// world is a limiter under random use, and what its laws need to know.
type modelCheck struct {
	*Limiter
	t    *rapid.T
	opts Options
	// batches is true where deliveries may be of many messages.
	batches bool
	// work are the deliveries that were allowed and have not ended.
	work []allowedDelivery
	// starts are the messages that began, for the law of the rate.
	starts []begin
	// state and until follow the events; era counts them.
	state      State
	trialAt    time.Time
	generation int
	// ignored are the trials of this era that said nothing, and trials all of them.
	trials, ignored int
}

type allowedDelivery struct {
	began      time.Time
	n          int
	generation int
}

type begin struct {
	at time.Time
	n  int
}

func newModelCheck(t *rapid.T) *modelCheck {
	w := &modelCheck{t: t, state: StateClosed, batches: rapid.Bool().Draw(t, "batches")}
	w.opts.Concurrency = rapid.SampledFrom([]int{1, 5, 50}).Draw(t, "concurrency")
	w.opts.Rate = rapid.SampledFrom([]float64{0, 0, 0.5, 20, 1000}).Draw(t, "rate")
	if rapid.Bool().Draw(t, "adaptive") {
		w.opts.Adaptive = &Adaptive{Start: rapid.SampledFrom([]int{1, 3, 20}).Draw(t, "start")}
	}
	if rapid.IntRange(0, 3).Draw(t, "breaker") > 0 {
		w.opts.Breaker = &Breaker{MinRequests: rapid.SampledFrom([]int{1, 4}).Draw(t, "least"), Delay: 3 * time.Second,
			Trials: rapid.SampledFrom([]int{1, 3}).Draw(t, "trials")}
	}
	change := func(s State) { w.state, w.trials, w.ignored = s, 0, 0; w.generation++ }
	w.opts.Events = &Events{
		Opened:     func(e Opened) { change(StateOpen); w.trialAt = time.Now().Add(e.Delay) },
		HalfOpened: func(HalfOpened) { change(StateHalfOpen) },
		Closed:     func(Closed) { change(StateClosed) },
	}
	w.Limiter = New(&w.opts)
	return w
}

// allow asks for a delivery and checks every law about the answer.
func (w *modelCheck) allow(n int) (ok bool, wait time.Duration, reason string) {
	wasOpen := w.state == StateOpen
	room, _ := w.Room(time.Now(), 0)
	ok, wait, reason = w.Allow(time.Now(), n)
	if !ok {
		if wait == 0 && len(w.work) == 0 {
			w.t.Fatalf("refused for %s until the next result, and none is to come", reason)
		}
		return ok, wait, reason
	}
	if room == 0 {
		w.t.Fatal("allowed where there was no room")
	}
	if wasOpen && (w.state != StateHalfOpen || time.Now().Before(w.trialAt)) {
		w.t.Fatalf("a delivery begins %s before the end of the open time, state %s", time.Until(w.trialAt), w.state)
	}
	if w.state == StateHalfOpen {
		if w.trials++; w.trials-w.ignored > w.opts.Breaker.Trials {
			w.t.Fatalf("%d trials, of which %d said nothing", w.trials, w.ignored)
		}
	}
	w.work = append(w.work, allowedDelivery{time.Now(), n, w.generation})
	w.starts = append(w.starts, begin{time.Now(), n})
	w.checkCounts()
	if w.batches {
		time.Sleep(time.Microsecond) // of one time, they could not be told apart
	}
	return ok, wait, reason
}

// checkCounts compares what is in work with every limit of it.
func (w *modelCheck) checkCounts() {
	s := w.Status()
	if s.InWork != len(w.work) {
		w.t.Fatalf("status has %d in work, there are %d", s.InWork, len(w.work))
	}
	if s.Breaker != w.state && w.opts.Breaker != nil {
		w.t.Fatalf("status has the breaker %s, events say %s", s.Breaker, w.state)
	}
	if s.Limit > 0 && s.InWork > s.Limit {
		w.t.Fatalf("%d in work, limit %d", s.InWork, s.Limit)
	}
	young := 0
	for _, d := range w.work {
		if d.generation == w.generation {
			young++
		}
	}
	if s.SlowStart > 0 && young > s.SlowStart {
		w.t.Fatalf("%d in work of a slow start that permits %d", young, s.SlowStart)
	}
}

// end ends one delivery, all messages of it with results of their own.
func (w *modelCheck) end(i int, results func() queue.Result) {
	d := w.work[i]
	w.work = slices.Delete(w.work, i, i+1)
	state, best := w.state, resultIgnored
	for range d.n {
		res := results()
		if v := classify(&res); v == resultOK || best == resultIgnored {
			best = v
		}
		w.Done(time.Now(), res, time.Since(d.began))
	}
	if state == StateHalfOpen && best == resultIgnored && d.generation == w.generation {
		w.ignored++
	}
}

func (w *modelCheck) checkRate() {
	if w.opts.Rate == 0 {
		return
	}
	burst := float64(burstOf(w.opts.Rate, w.opts.Batch))
	for i := range w.starts {
		sum := 0.0
		for _, s := range w.starts[i:] {
			sum += float64(s.n)
			most := burst + w.opts.Rate*s.at.Sub(w.starts[i].at).Seconds() + max(float64(s.n)-burst, 0)
			if sum > most+1e-3 {
				w.t.Fatalf("%v messages within %s, at most %v", sum, s.at.Sub(w.starts[i].at), most)
			}
		}
	}
}

// TestLaws: under any use, the rate holds over every window, no limit of what is
// in work is passed by a begin, an open breaker admits none and then as many
// trials as set, every refusal ends, and every place comes back.
func TestLaws(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	property := func(t *rapid.T) {
		steps := rapid.IntRange(1, 150).Draw(t, "steps")
		sick := rapid.IntRange(0, 3).Draw(t, "sick")
		rapid.SyncTest(t, func(t *rapid.T) {
			w := newModelCheck(t)
			result := func() queue.Result {
				all := []queue.Result{success, poison, unreached, cutOff, broken, broken, broken, broken, broken}
				return all[rapid.IntRange(0, 3+sick+min(sick, 2)).Draw(t, "result")]
			}
			for range steps {
				switch rapid.IntRange(0, 9).Draw(t, "step") {
				case 0, 1, 2, 3, 4:
					n := 1
					if w.batches {
						n = rapid.SampledFrom([]int{1, 3, 10}).Draw(t, "n")
					}
					_, _, reason := w.allow(n)
					seen[reason]++
				case 5, 6, 7:
					if len(w.work) > 0 {
						w.end(rapid.IntRange(0, len(w.work)-1).Draw(t, "which"), result)
					}
				default:
					time.Sleep(time.Duration(rapid.SampledFrom([]int{1, 10, 100, 4000}).Draw(t, "ms")) * time.Millisecond)
				}
				seen[string(w.state)]++
			}
			w.recover()
		})
	}
	// One round of a short run has few checks, and nothing rare in them.
	const rounds = 50
	for range rounds {
		if rapid.Check(t, property); t.Failed() || unseen(seen) == nil {
			break
		}
	}
	if missing := unseen(seen); missing != nil {
		t.Errorf("%q never came about: the laws are not tested", missing)
	}
}

// unseen returns what a run has to meet and did not.
func unseen(seen map[string]int) (missing []string) {
	for _, what := range []string{"", ReasonBreaker, ReasonConcurrency, ReasonRate, string(StateOpen), string(StateHalfOpen)} {
		if seen[what] == 0 {
			missing = append(missing, what)
		}
	}
	return missing
}

// recover has the app be well again: everything must flow once more.
func (w *modelCheck) recover() {
	w.checkRate()
	for len(w.work) > 0 {
		w.end(0, func() queue.Result { return success })
	}
	w.checkCounts()
	for range 60 {
		for tries := 0; ; tries++ {
			ok, wait, reason := w.allow(1)
			if ok {
				break
			}
			if tries == 3 {
				w.t.Fatalf("refused for %s although every wait was kept and nothing is in work", reason)
			}
			time.Sleep(wait)
		}
		time.Sleep(time.Millisecond)
		w.end(0, func() queue.Result { return success })
	}
	if w.state != StateClosed {
		w.t.Fatalf("the breaker is %s after 60 successes", w.state)
	}
}

// TestConcurrentUse has many workers use one limiter; what they are allowed must
// come back to nothing.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, Options{})
		r.Limiter = New(&Options{Rate: 1e6, Adaptive: &Adaptive{}, Breaker: &Breaker{Share: 0.9, Delay: 1, MaxDelay: 1},
			Events: &Events{LimitChanged: func(LimitChanged) {}, Opened: func(Opened) {}}})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() { use(r.Limiter, g) })
		}
		wg.Wait()
		if got := r.Status().InWork; got != 0 {
			t.Errorf("%d in work after all", got)
		}
		time.Sleep(time.Second)
		r.deliver(200, success) // no place was lost to the libraries either
	})
}

// use makes 2000 deliveries, of which a part fails.
func use(l *Limiter, g int) {
	for i := range 2000 {
		begun, n := time.Now(), 1+i%3
		time.Sleep(time.Duration(i%5) * time.Microsecond)
		if ok, _, _ := l.Allow(begun, n); !ok {
			continue
		}
		time.Sleep(time.Duration(g) * time.Microsecond)
		for m := range n {
			res := success
			if (g+i+m)%4 == 0 {
				res = broken
			}
			l.Done(time.Now(), res, time.Since(begun))
		}
		l.Room(begun, time.Millisecond)
		l.Status()
		l.SetRate(begun, float64(1e6+i))
	}
}
