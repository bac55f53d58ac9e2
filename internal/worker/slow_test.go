package worker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type slowness func(r *rand.Rand) time.Duration

var slowCases = map[string]slowness{
	"400 ms to 1 s": func(r *rand.Rand) time.Duration { return 400*ms + time.Duration(r.Int64N(int64(600*ms))) },
	"mostly 5 ms, sometimes half a second": func(r *rand.Rand) time.Duration {
		if r.Float64() < 0.05 {
			return 500 * ms
		}
		return 5 * ms
	},
	"1 to 4 s": func(r *rand.Rand) time.Duration { return time.Second + time.Duration(r.Int64N(int64(3*time.Second))) },
	"around 80 ms, widely spread": func(r *rand.Rand) time.Duration {
		return min(time.Duration(r.ExpFloat64()*float64(80*ms)), time.Second)
	},
}

func (r *harness) slowly(slow slowness, seed uint64) {
	d := &dice{r: rand.New(rand.NewPCG(seed, 9))}
	r.fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch c.Action {
		case queuetest.FakeReceive:
			return queuetest.FakeFault{Latency: slow(d.r)}
		case queuetest.FakeDelete:
			return queuetest.FakeFault{Latency: slow(d.r) / 5}
		}
		return queuetest.FakeFault{}
	})
}

func TestSharesWhenReceivesAreSlow(t *testing.T) {
	t.Parallel()
	for name, slow := range slowCases {
		for _, shared := range [][]int{{3, 2, 1}, {1, 1, 1}} {
			t.Run(fmt.Sprint(name, " ", shared), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(2) {
					synctest.Test(t, func(t *testing.T) { sharesWhenSlow(t, slow, shared, seed) })
				}
			})
		}
	}
}

func sharesWhenSlow(t *testing.T, slow slowness, shared []int, seed uint64) {
	const n = 600
	c := poolOf(t, nil, nil, weights(shared...)...)
	c.every(done(10 * ms))
	sum := 0
	for i, r := range c.all {
		r.send(n, "")
		r.slowly(slow, 3*seed+uint64(i))
		sum += shared[i]
	}
	c.run()
	for len(c.seen()) < n {
		after(100 * ms)
	}
	for i, weight := range shared {
		want := 100 * float64(weight) / float64(sum)
		got := 100 * float64(c.shares(n)[string(rune('a'+i))]) / n
		if math.Abs(got-want) > 5 {
			t.Errorf("seed %d: queue %c got %.1f %% of the first %d, want %.1f", seed, 'a'+i, got, n, want)
		}
	}
	for _, r := range c.all {
		r.fake.SetFault(nil)
	}
	after(10 * time.Minute)
	for _, r := range c.all {
		r.place(queuetest.FakeDeleted, n)
	}
	c.stop()
}

func TestEmptyTimeout(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name    string
		pace    pace
		peak    time.Duration
		peakAge time.Duration
		backlog backlog
		want    time.Duration
	}{
		{name: "never heard of", want: time.Second},
		{name: "its deletes are known", pace: pace{call: ms}, want: 250 * ms},
		{name: "plenty", pace: pace{roundTrip: 2 * ms}, backlog: backlog{known: true, plenty: true}, want: 250 * ms},
		{name: "plenty and far away", pace: pace{roundTrip: 120 * ms},
			backlog: backlog{known: true, plenty: true}, want: 600 * ms},
		{name: "plenty on a busy machine", pace: pace{roundTrip: 2 * ms}, peak: 150 * ms,
			backlog: backlog{known: true, plenty: true}, want: 750 * ms},
		{name: "plenty, very slow", pace: pace{roundTrip: 2 * ms}, peak: 3 * time.Second,
			backlog: backlog{known: true, plenty: true}, want: 10 * time.Second},
		{name: "plenty, barely responding", pace: pace{roundTrip: 2 * ms}, peak: 7 * time.Second,
			backlog: backlog{known: true, plenty: true}, want: 14 * time.Second},
		{name: "the machine was busy some time ago", pace: pace{roundTrip: 2 * ms}, peak: 700 * ms, peakAge: 30 * time.Second,
			backlog: backlog{known: true, plenty: true}, want: 250 * ms},
		{name: "became empty two seconds ago", pace: pace{roundTrip: 2 * ms},
			backlog: backlog{known: true, plenty: true, presumedEmptyAt: now.Add(-2 * time.Second)}, want: 100 * ms},
		{name: "became empty just now", pace: pace{roundTrip: 2 * ms},
			backlog: backlog{known: true, plenty: true, presumedEmptyAt: now},
			want:    6 * ms},
		{name: "a trickle", pace: pace{roundTrip: 20 * ms}, peak: 700 * ms, backlog: backlog{known: true}, want: 60 * ms},
		{name: "a trickle from a nearby queue", pace: pace{roundTrip: ms}, backlog: backlog{known: true}, want: 5 * ms},
		{name: "a trickle of unknown speed", backlog: backlog{known: true}, want: 300 * ms},
	} {
		w := New(nil, instant{}, &Options{Pool: NewPool(nil)})
		*w.pace, w.lane.backlog = tt.pace, tt.backlog
		w.pace.calls = newHistory(callStep)
		if tt.peak > 0 {
			w.pace.calls.add(tt.peak, now.Add(-tt.peakAge))
		}
		if got := w.lane.emptyTimeout(now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestPriceOfBecomingEmpty(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		slots, burst int
		every, think time.Duration
		want         int // other queue's minimum turns in 8 s
	}{
		{10, 10, 500 * ms, 10 * ms, 7000},
		{10, 10, 4 * time.Second, 10 * ms, 7200},
		{10, 30, 100 * ms, 10 * ms, 4800},
		{1, 1, 500 * ms, 100 * ms, 54},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := poolOf(t, &PoolOptions{Concurrency: tt.slots}, &queuetest.FakeOptions{Latency: 2 * ms}, weights(1, 1)...)
			c.every(done(tt.think))
			c.by["b"].send(14000, "")
			c.run()
			after(5 * time.Second)
			begin, before := time.Now(), c.posts("b")
			for time.Since(begin) < 8*time.Second {
				c.by["a"].send(tt.burst, "")
				after(tt.every)
			}
			got := c.posts("b") - before
			t.Logf("%+v: the other queue got %d turns, this one %d", tt, got, c.posts("a"))
			if got < tt.want {
				t.Errorf("%+v: the other queue got %d turns", tt, got)
			}
			c.every(nil)
			after(10 * time.Minute)
			c.stop()
		})
	}
}

func TestSlowIsNotEmpty(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name string
		sent time.Duration
		want time.Time
	}{
		{"the messages were there", -time.Minute, time.Time{}},
		{"they were sent later", time.Second, now},
	} {
		p := NewPool(nil)
		w := New(nil, instant{}, &Options{Pool: p})
		o := &openReceive{asked: 10, start: now.Add(-time.Second)}
		w.poller.open[o] = struct{}{}
		w.lane.expectMessages(o)
		if w.lane.expireExpected(now.Add(-ms)); w.poller.expected != 10 {
			t.Fatalf("%s: the wait was abandoned too early", tt.name)
		}
		if w.lane.expireExpected(now); w.poller.expected != 0 || !w.lane.emptyNow(now) || !w.lane.backlog.presumedEmptyAt.Equal(now) {
			t.Fatalf("%s: the wait was not given up after a second", tt.name)
		}
		msgs := make10(o.start.Add(tt.sent))
		o.waited = w.poller.waitedOnEmptyQueue(o, msgs, now)
		w.lane.updateBacklog(o, msgs, now)
		if w.lane.emptyNow(now) || !w.lane.backlog.presumedEmptyAt.Equal(tt.want) {
			t.Errorf("%s: it became empty at %v, want %v", tt.name, w.lane.backlog.presumedEmptyAt, tt.want)
		}
	}
}

func make10(sent time.Time) (msgs []queue.Message) {
	for range 10 {
		msgs = append(msgs, queue.Message{SentAt: sent})
	}
	return msgs
}

func TestReservedSlotsHaveABound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Concurrency: 12}, nil, weights(3, 2, 1)...)
		c.every(done(10 * ms))
		for _, r := range c.all {
			r.send(2000, "")
		}
		c.by["c"].slowly(func(*rand.Rand) time.Duration { return 800 * ms }, 1)
		c.run()
		after(400 * ms)
		c.pool.mu.Lock()
		if got := c.pool.granted; got != 3 {
			t.Errorf("%d slots are reserved, want 3 for the queue whose first receive is slow: a sixth of 12, and one", got)
		}
		c.pool.mu.Unlock()
		if got := len(c.seen()); got > 36 {
			t.Errorf("%d messages began while one queue had got none, want about five times its 3, and 12 in work", got)
		}
		c.every(nil)
		after(10 * time.Minute)
		c.stop()
	})
}

func TestWaited(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for _, tt := range []struct {
		name string
		took time.Duration
		msgs []queue.Message
		want bool
	}{
		{"were there", time.Second, []queue.Message{{SentAt: start.Add(-time.Hour), ReceiveCount: 1}}, false},
		{"sent meanwhile", time.Second,
			[]queue.Message{{SentAt: start.Add(500 * ms), ReceiveCount: 1}, {SentAt: start.Add(600 * ms), ReceiveCount: 1}},
			true},
		{"one of them was there", time.Second,
			[]queue.Message{{SentAt: start.Add(500 * ms), ReceiveCount: 1}, {SentAt: start, ReceiveCount: 1}}, false},
		{"sent in the future of this clock", time.Second,
			[]queue.Message{{SentAt: start.Add(time.Minute), ReceiveCount: 1}}, false},
		{"came back meanwhile", time.Second, []queue.Message{{SentAt: start.Add(-time.Hour), ReceiveCount: 2}}, true},
		{"had come back before", 20 * ms, []queue.Message{{SentAt: start.Add(-time.Hour), ReceiveCount: 2}}, false},
	} {
		w := New(nil, instant{}, nil)
		w.pace.roundTrip = 10 * ms
		if got := w.poller.waitedOnEmptyQueue(&openReceive{start: start}, tt.msgs, start.Add(tt.took)); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestDurationsOfCallsAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1700000000, 0)
	h := newHistory(callStep)
	if h.sum(now) != (durations{}) {
		t.Error("a new history remembers something")
	}
	h.add(3*ms, now)
	h.add(9*ms, now.Add(3*time.Second))
	h.add(5*ms, now.Add(6*time.Second))
	h.add(7*ms, now.Add(18*time.Second))
	for after, want := range map[time.Duration]durations{18: {4, 3 * ms, 9 * ms}, 29: {4, 3 * ms, 9 * ms},
		30: {2, 5 * ms, 7 * ms}, 35: {1, 7 * ms, 7 * ms}, 44: {1, 7 * ms, 7 * ms}, 45: {}} {
		if got := h.sum(now.Add(after * time.Second)); got != want {
			t.Errorf("after %d s it is %v, want %v", after, got, want)
		}
	}
}

func TestReceivesDoNotCrowdASlowServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, nil, nil, weights(3, 2, 1)...)
		c.every(done(10 * ms))
		var turn sync.Mutex
		free := time.Now()
		most := 0
		for _, r := range c.all {
			r.send(1500, "")
			r.fake.SetFault(func(call queuetest.FakeCall) queuetest.FakeFault {
				if call.Action != queuetest.FakeReceive {
					return queuetest.FakeFault{}
				}
				turn.Lock()
				defer turn.Unlock()
				if free.Before(time.Now()) {
					free = time.Now()
				}
				free = free.Add(100 * ms)
				most = max(most, int(time.Until(free)/(100*ms)))
				return queuetest.FakeFault{Latency: time.Until(free)}
			})
		}
		begin := time.Now()
		c.run()
		for len(c.seen()) < 1500 {
			after(100 * ms)
		}
		took := time.Since(begin)
		t.Logf("1500 in %v, %d receives at once, shares %v", took, most, c.shares(1500))
		if took > 25*time.Second { // 150 receives of 100 ms
			t.Errorf("1500 messages took %v, the server can do it in 15 s", took)
		}
		if most > 30 {
			t.Errorf("%d receives at once at a server that answers one after the other", most)
		}
		for i, want := range []int{750, 500, 250} {
			if got := c.shares(1500)[string(rune('a'+i))]; got < want-75 || got > want+75 {
				t.Errorf("queue %c got %d of 1500, want %d", 'a'+i, got, want)
			}
		}
		c.every(nil)
		after(10 * time.Minute)
		c.stop()
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	if got := loadOf(time.Hour, 0); got != light {
		t.Errorf("before anything is known: got %v", got)
	}
	for took, want := range map[time.Duration]load{50 * ms: light, 550 * ms: light, 551 * ms: heavy, 1100 * ms: heavy,
		1101 * ms: crowded} {
		if got := loadOf(took, 100*ms); got != want {
			t.Errorf("%v, when the shortest of late took 100 ms: got %v, want %v", took, got, want)
		}
	}
}

func TestLeastTrip(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := NewPool(nil)
	var w [4]*Worker
	for i, trip := range []time.Duration{300 * ms, 100 * ms, 5 * ms, 0} {
		w[i] = New(nil, instant{}, &Options{Pool: p})
		if trip > 0 {
			w[i].pace.recordReceive(2*trip, true, now)
			w[i].pace.recordReceive(trip, true, now)
		}
	}
	for i, want := range []time.Duration{100 * ms, 100 * ms, 5 * ms, 5 * ms} {
		if got := w[i].poller.leastTrip(now); got != want {
			t.Errorf("queue %d: got %v, want %v", i, got, want)
		}
	}
}

func TestWantFollowsTheLoad(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := poller{want: 16}
	for i, tt := range []struct {
		begun time.Duration
		load  load
		want  int
	}{
		{0, light, 32}, {0, light, 64}, {0, light, 64}, {0, heavy, 64}, {0, crowded, 32},
		{time.Second, crowded, 32},
		{time.Second, light, 32},
		{0, light, 64},
	} {
		at := now.Add(time.Duration(i) * time.Millisecond)
		if r.adaptWant(&openReceive{asked: 10, start: at.Add(-tt.begun)}, 10, tt.load, at); r.want != tt.want {
			t.Errorf("step %d: want %d at once, got %d", i, tt.want, r.want)
		}
	}
}

func TestCanBeRoundTrip(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := newPace()
	if !p.canBeRoundTrip(2*time.Second, now) {
		t.Error("the very first receive may take any time")
	}
	p.recordDelete(100*ms, now)
	if !p.canBeRoundTrip(400*ms, now) || p.canBeRoundTrip(401*ms, now) {
		t.Error("if a call takes 100 ms, a receive may take 400 ms")
	}
}

func TestEmptyTimeoutOfANewQueue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name   string
		weight int
		other  time.Duration
		want   time.Duration
	}{
		{"no queue has responded", 1, 0, 20 * time.Second},
		{"no queue has responded, in strict order", 0, 0, time.Second},
		{"another one responded", 1, 10 * ms, time.Second},
		{"another one responded slowly", 1, 1200 * ms, 3600 * ms},
		{"another one responded slowly, in strict order", 0, 1200 * ms, 3600 * ms},
	} {
		p := NewPool(nil)
		w := New(nil, instant{}, &Options{Pool: p, Weight: tt.weight})
		other := New(nil, instant{}, &Options{Pool: p})
		if tt.other > 0 {
			other.pace.recordReceive(tt.other, false, now)
		}
		if got := w.lane.emptyTimeout(now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestQueueWithPlentyClaimsAllBetweenReceives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(nil, instant{}, &Options{Pool: NewPool(nil)})
		w.core.phase, w.core.workCtx = running, t.Context()
		w.gate.reasons = nil
		w.lane.backlog.known, w.lane.backlog.plenty = true, true
		if got := w.lane.usableSlots(time.Now()); got != defaultConcurrency {
			t.Errorf("plenty: %d usable slots, want all %d", got, defaultConcurrency)
		}
		w.lane.backlog.plenty = false
		if got := w.lane.usableSlots(time.Now()); got != 1 {
			t.Errorf("a trickle: %d usable slots, want 1", got)
		}
	})
}
