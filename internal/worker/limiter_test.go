package worker

import (
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type testLimiter struct {
	mu          sync.Mutex
	rate        float64
	burst       float64
	concurrency int
	open        bool

	tokens  float64
	filled  time.Time
	working int
	most    int
	begun   []time.Time
	done    int
	asked   int
}

func (l *testLimiter) refill(now time.Time) {
	if l.filled.IsZero() {
		l.tokens = l.burst
	} else {
		l.tokens = min(l.burst, l.tokens+l.rate*now.Sub(l.filled).Seconds())
	}
	l.filled = now
}

func (l *testLimiter) Acquire(now time.Time, n int) (uint64, time.Duration, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.rate > 0 {
		l.refill(now)
	}
	switch {
	case l.open:
		return 0, 5 * time.Second, "breaker"
	case l.concurrency > 0 && l.working+n > l.concurrency:
		return 0, 0, "concurrency"
	case l.rate > 0 && l.tokens+1e-9 < float64(n):
		return 0, time.Duration((float64(n)-l.tokens)/l.rate*1e9) + time.Microsecond, "rate"
	}
	l.tokens -= float64(n)
	l.working += n
	l.most = max(l.most, l.working)
	for range n {
		l.begun = append(l.begun, now)
	}
	return 1, 0, ""
}

func (l *testLimiter) Release(_ uint64, _ time.Time, results ...queue.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.working -= len(results)
	l.done += len(results)
}

func (l *testLimiter) Room(now time.Time, d time.Duration) (room int, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room = 1000
	if l.open {
		return 0, "breaker"
	}
	if l.concurrency > 0 {
		room, reason = l.concurrency-l.working, "concurrency"
	}
	if l.rate > 0 {
		l.refill(now)
		if saved := int(min(l.burst, l.tokens+l.rate*d.Seconds()) + 1e-9); saved < room {
			room, reason = saved, "rate"
		}
	}
	return max(room, 0), reason
}

func (l *testLimiter) ended() (begun, done, asked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.begun), l.done, l.asked
}

func (l *testLimiter) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

type limits struct {
	mu     sync.Mutex
	events []Limited
}

func (l *limits) add(e Limited) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *limits) all() []Limited {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Limited(nil), l.events...)
}

type scripted struct {
	waits []time.Duration // -1 grants a permit
	room  int
}

func (s *scripted) Acquire(time.Time, int) (uint64, time.Duration, string) {
	wait := s.waits[0]
	s.waits = s.waits[1:]
	if wait >= 0 {
		return 0, wait, "rate"
	}
	return 1, 0, ""
}

func (s *scripted) Release(uint64, time.Time, ...queue.Result) {}

func (s *scripted) Room(time.Time, time.Duration) (int, string) { return s.room, "rate" }

func TestRefusalsOfALimiter(t *testing.T) {
	t.Parallel()
	var l limits
	c := &core{mu: &callbackMutex{}, events: &Events{Limited: l.add}}
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	s := &scripted{waits: []time.Duration{-1, 500 * ms, -1, 0, -1, 0, 3 * time.Second, -1, -1}}
	b := &limiterState{shared: &sharedLimiter{limiter: s}, core: c, pace: &pace{}}
	var latest uint64
	step := func(ms, want int) {
		t.Helper()
		permit, n := b.acquire(at(ms), 1)
		if n != want {
			t.Errorf("after %d ms %d are allowed, want %d", ms, n, want)
		}
		if permit != 0 {
			latest = permit
		}
	}
	step(0, 1)
	step(100, 0)
	step(599, 0)
	step(600, 1)
	step(700, 0)
	step(750, 0)
	b.release(at(760), latest, []queue.Result{{}})
	step(760, 1)
	step(800, 0)
	step(901, 0) // no delivery has ended, so it is asked again after askLimiterAgain
	if len(s.waits) != 2 {
		t.Fatalf("%d answers left, want 2", len(s.waits))
	}
	step(3000, 0)
	step(3901, 1)
	b.endCalmPeriod(at(4900))
	if c.counts.Limited != 1 || !b.limiting {
		t.Errorf("%d times of limiting, on: %v; refusals within a second of each other are one", c.counts.Limited, b.limiting)
	}
	b.endCalmPeriod(at(4901))
	c.mu.Lock()
	_ = b.limiting // under the lock; Unlock calls the listeners
	c.mu.Unlock()
	want := []Limited{{Reason: "rate"}, {Reason: "rate", Over: true, For: 3801 * ms}}
	if !reflect.DeepEqual(l.events, want) {
		t.Errorf("events %+v, want %+v", l.events, want)
	}
	var none *limiterState
	if none.refusing(start) || none.room(start) < queue.MaxBatch {
		t.Error("no limiter allows everything")
	}
}

func TestConcurrencyLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &testLimiter{concurrency: 3}
		var events limits
		fake := queuetest.NewFake(nil)
		send(t, fake, 300, "")
		fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Latency: 5 * ms} })
		r := start(t, fake, &testApp{handle: done(20 * ms)},
			&Options{Concurrency: 10, Limiter: l, Events: &Events{Limited: events.add}})
		after(4 * time.Second)
		r.place(queuetest.FakeDeleted, 300)
		if r.app.most != 3 {
			t.Errorf("%d deliveries at once, the limiter allows 3", r.app.most)
		}
		begun, ended, _ := l.ended()
		if c := r.w.Status().Counts; ended != 300 || begun != 300 || c.Returned > 0 || c.Limited == 0 {
			t.Errorf("%d allowed, %d ended, want 300 each: %+v", begun, ended, c)
		}
		if all := events.all(); len(all) != 2 || !all[1].Over {
			t.Errorf("events %+v, want one begin and one end", all)
		}
		r.stop()
	})
}

func TestRateLimiter(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{2, 50, 400} {
		synctest.Test(t, func(t *testing.T) {
			l := &testLimiter{rate: rate, burst: rate}
			n := int(rate * 20)
			fake := queuetest.NewFake(nil)
			send(t, fake, n, "")
			fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Latency: 5 * ms} })
			var events limits
			r := start(t, fake, &testApp{handle: done(5 * ms)}, &Options{Limiter: l, Events: &Events{Limited: events.add}})
			most := 0
			for range 2000 {
				after(5 * time.Millisecond)
				most = max(most, r.w.Status().Prefetched)
			}
			if most > max(queue.MaxBatch, int(rate/4))+int(math.Ceil(rate*0.005)) {
				t.Errorf("rate %v: %d messages prefetched", rate, most)
			}
			if s := r.w.Status(); s.LimitedBy == "" {
				t.Errorf("rate %v: the status does not show the limit", rate)
			}
			after(12 * time.Second)
			r.place(queuetest.FakeDeleted, n)
			c := r.w.Status().Counts
			if c.Returned+c.Duplicates > 0 || len(events.all()) > 4 {
				t.Errorf("rate %v: events %+v, counts %+v", rate, events.all(), c)
			}
			r.stop()
			for i := range l.begun { // at most two seconds' worth start in any second
				if j := i + int(2*rate) + 1; j < len(l.begun) && l.begun[j].Sub(l.begun[i]) < time.Second {
					t.Fatalf("rate %v: %d deliveries began within %v", rate, j-i+1, l.begun[j].Sub(l.begun[i]))
				}
			}
			t.Logf("rate %v: %d polls, asked %d times for %d", rate, r.fake.Calls(queuetest.FakeReceive), l.asked, n)
		})
	}
}

func TestOpenBreakerStopsReceiving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &testLimiter{}
		fake := queuetest.NewFake(nil)
		send(t, fake, 3000, "")
		fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Latency: 20 * ms} })
		r := start(t, fake, &testApp{handle: done(20 * ms)}, &Options{Concurrency: 10, Limiter: l})
		after(time.Second)
		l.set(func() { l.open = true })
		after(time.Second)
		held := r.w.Status().Prefetched
		if held == 0 {
			t.Fatal("no message was prefetched, so the test proves nothing")
		}
		polls := fake.Calls(queuetest.FakeReceive)
		after(11 * time.Second)
		s := r.w.Status()
		if got := fake.Calls(queuetest.FakeReceive) - polls; got > 0 || s.InWork > 0 {
			t.Errorf("%d receives and %d deliveries while the breaker is open", got, s.InWork)
		}
		if s.Prefetched != 0 || s.Counts.Returned != int64(held) || s.LimitedBy != "breaker" {
			t.Errorf("%d prefetched, %d of %d returned, limited by %q", s.Prefetched, s.Counts.Returned, held, s.LimitedBy)
		}
		_, _, before := l.ended()
		after(time.Minute)
		if _, _, asked := l.ended(); asked-before > 15 {
			t.Errorf("asked %d times in a minute for nothing", asked-before)
		}
		l.set(func() { l.open = false })
		after(15 * time.Second)
		r.place(queuetest.FakeDeleted, 3000)
		if begun, ended, _ := l.ended(); ended != 3000 || begun != 3000 {
			t.Errorf("%d allowed and %d ended, want 3000", begun, ended)
		}
		r.stop()
	})
}

func TestOpenBreakerEndsTheWaitForMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &testLimiter{}
		fake := queuetest.NewFake(nil)
		r := start(t, fake, &testApp{}, &Options{Limiter: l})
		after(2 * time.Second)
		if s := r.w.Status(); fake.OpenReceives() != 1 || !s.Receiving {
			t.Fatalf("no receive is open, so the test proves nothing: %+v", s)
		}
		l.set(func() { l.open = true })
		after(2 * time.Second)
		if s, open := r.w.Status(), fake.OpenReceives(); open != 0 || s.Receiving {
			t.Errorf("%d receives open while the breaker is; receiving: %v", open, s.Receiving)
		}
		before := r.w.Status().Reasons
		after(5 * time.Second)
		if reasons := r.w.Status().Reasons; len(reasons) != 1 || !slices.Equal(reasons, before) {
			t.Errorf("the breaker stays open without a refusal, and its reason changed from %v to %v", before, reasons)
		}
		send(t, fake, 1, "")
		after(10 * time.Second)
		if got := r.w.Status().Counts.Received; got != 0 {
			t.Errorf("%d messages received while the breaker is open", got)
		}
		l.set(func() { l.open = false })
		after(time.Second)
		r.place(queuetest.FakeDeleted, 1)
		if s := r.w.Status(); fake.OpenReceives() != 1 || !s.Receiving {
			t.Errorf("afterwards: %+v", s)
		}
		l.set(func() { l.open = true })
		after(2 * time.Second)
		if reasons := r.w.Status().Reasons; len(reasons) != 1 || !reasons[0].Since.After(before[0].Since) {
			t.Errorf("the breaker opened again, and its reason changed from %v to %v", before, reasons)
		}
		r.stop()
	})
}

func TestOpenBreakerShowsInEveryQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &testLimiter{rate: 2, burst: 1}
		var events limits
		c := poolOf(t, &PoolOptions{Concurrency: 10}, nil,
			sharing(l, []*Options{{}, {Events: &Events{Limited: events.add}}, {}})...)
		c.every(done(20 * ms))
		c.run()
		c.by["a"].send(100, "")
		c.by["b"].send(5, "")
		after(10 * time.Second)
		for _, name := range []string{"a", "b"} {
			if s := c.by[name].w.Status(); s.LimitedBy != "rate" || !s.Receiving || len(s.Reasons) > 0 {
				t.Errorf("%s under a rate: limited by %q, receiving: %v, %+v", name, s.LimitedBy, s.Receiving, s.Reasons)
			}
		}
		l.set(func() { l.open = true })
		after(3 * time.Second)
		for name, r := range c.by {
			s := r.w.Status()
			if s.LimitedBy != "breaker" || s.Receiving || len(s.Reasons) != 1 || s.Reasons[0].Block != BreakerOpen {
				t.Errorf("%s under an open breaker: limited by %q, receiving: %v, %+v", name, s.LimitedBy, s.Receiving, s.Reasons)
			}
			if open := r.fake.OpenReceives(); open > 0 {
				t.Errorf("%s does not receive, and has %d receives open", name, open)
			}
		}
		if all := events.all(); all[len(all)-1] != (Limited{Reason: "breaker"}) {
			t.Errorf("events of b: %+v", all)
		}
		l.set(func() { l.open, l.rate = false, 0 })
		after(10 * time.Second)
		for name, r := range c.by {
			if s := r.w.Status(); s.LimitedBy != "" || !s.Receiving || len(s.Reasons) > 0 || r.fake.OpenReceives() == 0 {
				t.Errorf("%s afterwards: %+v", name, s)
			}
		}
		c.stop()
	})
}

func TestTwoLimitersInAPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &testLimiter{concurrency: 4}
		own := &testLimiter{open: true}
		var sharedSeen, ownSeen limits
		with := func(l Limiter, seen *limits) *Options {
			return &Options{Limiter: l, Weight: 1, Events: &Events{Limited: seen.add}}
		}
		c := poolOf(t, &PoolOptions{Concurrency: 10}, nil, with(own, &ownSeen), with(shared, &sharedSeen),
			with(shared, &sharedSeen))
		c.every(done(20 * ms))
		for _, r := range c.all {
			r.send(400, "")
		}
		c.run()
		after(5 * time.Second)
		if got := c.posts("a"); got != 0 {
			t.Errorf("%d deliveries through an open breaker", got)
		}
		for _, name := range []string{"b", "c"} {
			c.by[name].place(queuetest.FakeDeleted, 400)
		}
		if _, ended, _ := shared.ended(); shared.most != 4 || ended != 800 {
			t.Errorf("the shared limiter allows 4 at once, saw %d, and %d of 800 ends", shared.most, ended)
		}
		if len(sharedSeen.all()) == 0 || len(ownSeen.all()) != 1 {
			t.Errorf("limited by the shared one %+v, by the other %+v", sharedSeen.all(), ownSeen.all())
		}
		own.set(func() { own.open = false })
		after(10 * time.Second)
		c.by["a"].place(queuetest.FakeDeleted, 400)
		if _, ended, _ := own.ended(); ended != 400 {
			t.Errorf("the limiter of the first queue saw %d of 400 ends", ended)
		}
		c.stop()
	})
}

func TestSharesUnderALimiter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit *testLimiter
	}{
		{"rate", &testLimiter{rate: 60, burst: 60}},
		{"fast rate", &testLimiter{rate: 300, burst: 300}},
		{"slow rate", &testLimiter{rate: 6, burst: 1}},
		{"concurrency", &testLimiter{concurrency: 3}},
		{"much concurrency", &testLimiter{concurrency: 9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				members := weights(3, 2, 1)
				sharing(tt.limit, members)
				c := poolOf(t, &PoolOptions{Concurrency: 10}, nil, members...)
				c.every(done(50 * ms))
				for _, r := range c.all {
					r.send(2000, "")
					r.fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Latency: 10 * ms} })
				}
				c.run()
				begin := time.Now()
				for len(c.seen()) < 1500 {
					after(100 * ms)
				}
				shares := c.shares(1500)
				for i, want := range []int{750, 500, 250} {
					if got := shares[string(rune('a'+i))]; got < want-75 || got > want+75 { // 5 % of 1500
						t.Errorf("queue %c got %d of 1500, want %d", 'a'+i, got, want)
					}
				}
				polls := 0
				var givenBack int64
				for _, r := range c.all {
					polls += r.fake.Calls(queuetest.FakeReceive)
					givenBack += r.w.Status().Counts.Returned
				}
				t.Logf("1500 in %v, %d polls, %d given back, %v", time.Since(begin), polls, givenBack, shares)
				if givenBack > 60 {
					t.Errorf("%d of 600 were given back", givenBack)
				}
				c.every(nil)
				l := tt.limit
				l.set(func() { l.rate, l.concurrency = 0, 0 })
				after(time.Minute)
				c.stop()
			})
		})
	}
}

func TestLimiterCutsBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &testLimiter{rate: 4, burst: 4}
		app := &batchApp{}
		fake := queuetest.NewFake(nil)
		send(t, fake, 40, "")
		r := startBatches(t, fake, app, &Options{Limiter: l, Batch: Batch{Size: 10}})
		after(15 * time.Second)
		r.place(queuetest.FakeDeleted, 40)
		for _, n := range app.sizes() {
			if n > 4 {
				t.Errorf("a batch of %d, the limiter allows 4 at a time", n)
			}
		}
		if _, ended, _ := l.ended(); ended != 40 {
			t.Errorf("%d of 40 ends events", ended)
		}
		r.stop()
	})
}
