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

type modelCheck struct {
	*Limiter
	t               *rapid.T
	opts            Options
	batches         bool
	inWork          []allowedDelivery
	starts          []messageStart
	state           string
	trialAt         time.Time
	generation      int
	trials, ignored int
}

type allowedDelivery struct {
	permit     uint64
	n          int
	generation int
}

type messageStart struct {
	at time.Time
	n  int
}

func newModelCheck(t *rapid.T) *modelCheck {
	c := &modelCheck{t: t, state: stateClosed, batches: rapid.Bool().Draw(t, "batches")}
	c.opts.Concurrency = rapid.SampledFrom([]int{1, 5, 50}).Draw(t, "concurrency")
	c.opts.Rate = rapid.SampledFrom([]float64{0, 0, 0.5, 20, 1000}).Draw(t, "rate")
	c.opts.Adaptive = rapid.Bool().Draw(t, "adaptive")
	if rapid.IntRange(0, 3).Draw(t, "breaker") > 0 {
		ratio := rapid.SampledFrom([]float64{0.1, 0.5}).Draw(t, "ratio")
		c.opts.Breaker = &Breaker{FailureRatio: ratio, Delay: 3 * time.Second}
	}
	change := func(state string) { c.state, c.trials, c.ignored = state, 0, 0; c.generation++ }
	c.opts.Events = &Events{
		Opened:     func(e Opened) { change(stateOpen); c.trialAt = time.Now().Add(e.Delay) },
		HalfOpened: func(HalfOpened) { change(stateHalfOpen) },
		Closed:     func(Closed) { change(stateClosed) },
	}
	c.Limiter = New(&c.opts)
	return c
}

func (c *modelCheck) allow(n int) (ok bool, wait time.Duration, reason string) {
	wasOpen := c.state == stateOpen
	room, _ := c.Room(time.Now(), 0)
	permit, wait, reason := c.Acquire(time.Now(), n)
	if permit == 0 {
		if wait == 0 && len(c.inWork) == 0 {
			c.t.Fatalf("refused for %s until the next result, and nothing is in work", reason)
		}
		return false, wait, reason
	}
	if room == 0 {
		c.t.Fatal("allowed although there was no room")
	}
	if wasOpen && (c.state != stateHalfOpen || time.Now().Before(c.trialAt)) {
		c.t.Fatalf("a delivery starts %s before the trial is due, state %s", time.Until(c.trialAt), c.state)
	}
	if c.state == stateHalfOpen {
		if c.trials++; c.trials-c.ignored > 1 {
			c.t.Fatalf("%d trials, of which %d were ignored", c.trials, c.ignored)
		}
	}
	c.inWork = append(c.inWork, allowedDelivery{permit, n, c.generation})
	c.starts = append(c.starts, messageStart{time.Now(), n})
	c.checkCounts()
	return true, wait, reason
}

func (c *modelCheck) checkCounts() {
	s := c.Status()
	if s.InWork != len(c.inWork) {
		c.t.Fatalf("status reports %d in work, want %d", s.InWork, len(c.inWork))
	}
	if s.Breaker != c.state && c.opts.Breaker != nil {
		c.t.Fatalf("status reports the breaker %s, events say %s", s.Breaker, c.state)
	}
	if s.Limit > 0 && s.InWork > s.Limit {
		c.t.Fatalf("%d in work, limit %d", s.InWork, s.Limit)
	}
	current := 0
	for _, d := range c.inWork {
		if d.generation == c.generation {
			current++
		}
	}
	if s.SlowStart > 0 && current > s.SlowStart {
		c.t.Fatalf("%d in work in a slow start that allows %d", current, s.SlowStart)
	}
}

func (c *modelCheck) end(i int, results func() queue.Result) {
	d := c.inWork[i]
	c.inWork = slices.Delete(c.inWork, i, i+1)
	state, best := c.state, resultIgnored
	all := make([]queue.Result, d.n)
	for i := range all {
		all[i] = results()
		if class := classify(&all[i]); class == resultOK || best == resultIgnored {
			best = class
		}
	}
	c.Release(d.permit, time.Now(), all...)
	if state == stateHalfOpen && best == resultIgnored && d.generation == c.generation {
		c.ignored++
	}
}

func (c *modelCheck) checkRate() {
	if c.opts.Rate == 0 {
		return
	}
	burst := float64(burstOf(c.opts.Rate, c.opts.Batch))
	for i := range c.starts {
		sum := 0.0
		for _, s := range c.starts[i:] {
			sum += float64(s.n)
			most := burst + c.opts.Rate*s.at.Sub(c.starts[i].at).Seconds() + max(float64(s.n)-burst, 0)
			if sum > most+1e-3 {
				c.t.Fatalf("%v messages within %s, at most %v", sum, s.at.Sub(c.starts[i].at), most)
			}
		}
	}
}

func TestLimitsHoldUnderRandomUse(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	property := func(t *rapid.T) {
		steps := rapid.IntRange(1, 150).Draw(t, "steps")
		failing := rapid.IntRange(0, 3).Draw(t, "failing")
		rapid.SyncTest(t, func(t *rapid.T) {
			c := newModelCheck(t)
			result := func() queue.Result {
				all := []queue.Result{success, rejected, unreached, canceled}
				if i := rapid.IntRange(0, 3+failing+min(failing, 2)).Draw(t, "result"); i < len(all) {
					return all[i]
				}
				return serverError
			}
			for range steps {
				switch rapid.IntRange(0, 9).Draw(t, "step") {
				case 0, 1, 2, 3, 4:
					n := 1
					if c.batches {
						n = rapid.SampledFrom([]int{1, 3, 10}).Draw(t, "n")
					}
					_, _, reason := c.allow(n)
					seen[reason]++
				case 5, 6, 7:
					if len(c.inWork) > 0 {
						c.end(rapid.IntRange(0, len(c.inWork)-1).Draw(t, "which"), result)
					}
				default:
					time.Sleep(time.Duration(rapid.SampledFrom([]int{1, 10, 100, 4000}).Draw(t, "ms")) * time.Millisecond)
				}
				seen[c.state]++
			}
			c.recover()
		})
	}
	// A single run may miss rare states.
	const rounds = 50
	for range rounds {
		if rapid.Check(t, property); t.Failed() || unseen(seen) == nil {
			break
		}
	}
	if missing := unseen(seen); missing != nil {
		t.Errorf("%q never occurred: the properties are not tested", missing)
	}
}

func unseen(seen map[string]int) (missing []string) {
	for _, what := range []string{"", reasonBreaker, reasonConcurrency, reasonRate, stateOpen, stateHalfOpen} {
		if seen[what] == 0 {
			missing = append(missing, what)
		}
	}
	return missing
}

func (c *modelCheck) recover() {
	c.checkRate()
	for len(c.inWork) > 0 {
		c.end(0, func() queue.Result { return success })
	}
	c.checkCounts()
	for range 60 {
		for tries := 0; ; tries++ {
			ok, wait, reason := c.allow(1)
			if ok {
				break
			}
			if tries == 3 {
				c.t.Fatalf("refused for %s although every wait is over and nothing is in work", reason)
			}
			time.Sleep(wait)
		}
		time.Sleep(time.Millisecond)
		c.end(0, func() queue.Result { return success })
	}
	if c.state != stateClosed {
		c.t.Fatalf("the breaker is %s after 60 successes", c.state)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, Options{})
		h.Limiter = New(&Options{Rate: 1e6, Adaptive: true, Breaker: &Breaker{FailureRatio: 0.9, Delay: 1},
			Events: &Events{LimitChanged: func(Resized) {}, Opened: func(Opened) {}}})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() { use(h.Limiter, g) })
		}
		wg.Wait()
		if got := h.Status().InWork; got != 0 {
			t.Errorf("%d in work at the end", got)
		}
		time.Sleep(time.Second)
		h.deliver(200, success) // the libraries have lost no permits either
	})
}

func use(l *Limiter, g int) {
	for i := range 2000 {
		startedAt, n := time.Now(), 1+i%3
		time.Sleep(time.Duration(i%5) * time.Microsecond)
		permit, _, _ := l.Acquire(startedAt, n)
		if permit == 0 {
			continue
		}
		time.Sleep(time.Duration(g) * time.Microsecond)
		results := slices.Repeat([]queue.Result{success}, n)
		for m := range results {
			if (g+i+m)%4 == 0 {
				results[m] = serverError
			}
		}
		l.Release(permit, time.Now(), results...)
		l.Room(startedAt, time.Millisecond)
		l.Status()
	}
}
