package worker

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

func TestThrottlePause(t *testing.T) {
	t.Parallel()
	now := time.Now()
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for _, tt := range []struct {
		name    string
		t       throttle
		asked   time.Duration
		started time.Time
		random  float64
		want    time.Duration
		fresh   bool
	}{
		{name: "the first", started: in(-time.Second), want: 2 * time.Second, fresh: true},
		{name: "the first, with the most jitter", started: in(-time.Second), random: 1, want: time.Second, fresh: true},
		{name: "the third in a row", t: throttle{from: in(-9 * time.Second), until: in(-5 * time.Second), count: 2},
			started: in(-time.Second), want: 8 * time.Second, fresh: true},
		{name: "the tenth", t: throttle{from: in(-90 * time.Second), until: in(-50 * time.Second), count: 9},
			started: in(-time.Second), want: 30 * time.Second, fresh: true},
		{name: "the target requests a time", asked: 7 * time.Second, started: in(-time.Second), want: 7 * time.Second,
			fresh: true},
		{name: "started before the pause: unchanged",
			t: throttle{from: in(-time.Second), until: in(3 * time.Second), count: 1}, started: in(-2 * time.Second),
			want: 3 * time.Second},
		{name: "started before, and requests a longer time",
			t: throttle{from: in(-time.Second), until: in(3 * time.Second), count: 1}, asked: time.Minute,
			started: in(-2 * time.Second), want: time.Minute},
		{name: "started before, and the pause is almost over",
			t: throttle{from: in(-time.Second), until: in(time.Millisecond), count: 1}, started: in(-2 * time.Second),
			want: time.Second},
	} {
		got, fresh := tt.t.nextPause(tt.asked, tt.started, now, tt.random)
		if got != tt.want || fresh != tt.fresh {
			t.Errorf("%s: got %v, %v; want %v, %v", tt.name, got, fresh, tt.want, tt.fresh)
		}
	}
}

func TestThrottledTargetIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var pauses []Throttled
		var gates []bool
		o := Options{Concurrency: 5, Events: &Events{
			Throttled:   func(e Throttled) { mu.Lock(); pauses = append(pauses, e); mu.Unlock() },
			GateChanged: func(g GateChanged) { mu.Lock(); gates = append(gates, g.Open); mu.Unlock() },
		}}
		app := &testApp{handle: done(20 * ms)}
		r := prepare(t, queuetest.NewFake(&queuetest.FakeOptions{Latency: 4 * ms}), app, &o)
		r.send(5000, "")
		r.run()
		after(time.Second)
		app.mu.Lock()
		app.handle = throttledApp
		app.mu.Unlock()
		after(100 * ms)
		s := r.w.Status()
		if len(s.Reasons) != 1 || s.Reasons[0].Block != Throttling || s.InWork != 0 {
			t.Fatalf("after a refusal: %+v", s)
		}
		polls := r.fake.Calls(queuetest.FakeReceive)
		after(400 * ms)
		if got := r.fake.Calls(queuetest.FakeReceive) - polls; got > 0 {
			t.Errorf("%d receives during the pause", got)
		}
		after(2 * time.Minute)
		mu.Lock()
		n := len(pauses)
		if n < 5 || n > 12 {
			t.Errorf("%d pauses in two minutes of refusals, want them to grow to 30 s", n)
		}
		if last := pauses[n-1]; last.For < 15*time.Second || last.For > 30*time.Second || last.Consecutive != n {
			t.Errorf("the last pause of %d: %+v", n, last)
		}
		mu.Unlock()
		counts := r.w.Status().Counts
		if int(counts.Throttled) > 5+n {
			t.Errorf("%d deliveries were refused in %d pauses: after each only one may try", counts.Throttled, n)
		}
		app.mu.Lock()
		app.handle = done(20 * ms)
		app.mu.Unlock()
		after(10 * time.Minute)
		r.place(queuetest.FakeDeleted, 5000)
		receipts := map[string]bool{}
		for _, p := range app.seen() {
			if receipts[p.receipt] {
				t.Fatalf("receipt %s was posted twice", p.receipt)
			}
			receipts[p.receipt] = true
		}
		if got := r.w.Status(); got.Limit != 5 || !got.Receiving {
			t.Errorf("in the end the limit is %d, receiving %v", got.Limit, got.Receiving)
		}
		r.stop()
	})
}

func TestThrottledIsNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var attempts, receives []int
		var asked []time.Time
		calls, events := 0, 0
		app := &testApp{handle: func(context.Context, *queue.Message) queue.Result {
			asked = append(asked, time.Now())
			if calls++; calls <= 3 {
				return queue.Result{Outcome: queue.Throttled, Status: 429, RetryAfter: 40 * time.Second}
			}
			return queue.Result{Outcome: queue.Done}
		}}
		r := start(t, queuetest.NewFake(nil), app,
			&Options{ErrorVisibilityTimeout: ptr(time.Hour), Events: &Events{Settled: func(s Settled) {
				mu.Lock()
				attempts, receives = append(attempts, s.Attempt), append(receives, s.ReceiveCount)
				mu.Unlock()
			}, Postponed: func(p Postponed) {
				mu.Lock()
				if p.Throttled && p.Status == 429 && p.Kept {
					events++
				}
				mu.Unlock()
			}}})
		r.send(1, "")
		after(5 * time.Minute)
		if events != 3 {
			t.Errorf("%d of 3 throttles are events", events)
		}
		if !reflect.DeepEqual(attempts, []int{1}) || !reflect.DeepEqual(receives, []int{1}) {
			t.Errorf("attempts %v, receives %v: being throttled costs neither", attempts, receives)
		}
		for i := 1; i < len(asked); i++ {
			if pause := asked[i].Sub(asked[i-1]); pause < 40*time.Second || pause > 41*time.Second {
				t.Errorf("asked again after %v, want 40 s as the target asked", pause)
			}
		}
		r.place(queuetest.FakeDeleted, 1)
		r.stop()
	})
}

func TestEndsOfDeliveriesAreCounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		result queue.Result
		paused bool // before the delivery ends, so the message is not kept
		want   Counts
	}{
		{"done", queue.Result{Outcome: queue.Done}, false, Counts{Done: 1}},
		{"failed", queue.Result{Outcome: queue.Failed}, false, Counts{Failed: 1}},
		{"unreached", queue.Result{Outcome: queue.Unreached}, false, Counts{Unreached: 1}},
		{"throttled and kept", queue.Result{Outcome: queue.Throttled}, false, Counts{Throttled: 1, Postponed: 1}},
		{"throttled and not kept", queue.Result{Outcome: queue.Throttled}, true, Counts{Throttled: 1}},
		{"postponed", queue.Result{Outcome: queue.Postponed}, true, Counts{Postponed: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			app := &testApp{handle: func(ctx context.Context, _ *queue.Message) queue.Result {
				if calls++; calls > 1 {
					sleep(ctx, time.Minute)
					return queue.Result{Outcome: queue.Done}
				}
				sleep(ctx, time.Second)
				return tt.result
			}}
			r := start(t, queuetest.NewFake(nil), app, nil)
			r.send(1, "")
			after(500 * ms)
			if tt.paused {
				r.w.Pause("for a test")
			}
			after(time.Second)
			c := r.w.Status().Counts
			got := Counts{Done: c.Done, Failed: c.Failed, Unreached: c.Unreached, Throttled: c.Throttled,
				Postponed: c.Postponed, Aborted: c.Aborted, Late: c.Late}
			if got != tt.want {
				t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
			}
			r.stop()
		})
	}
}

func TestThrottledPrefetch(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{2 * time.Second, 30 * time.Second, 3 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			app := &testApp{handle: done(20 * ms)}
			r := prepare(t, queuetest.NewFake(&queuetest.FakeOptions{Latency: 20 * ms}), app, &Options{Concurrency: 10})
			r.send(3000, "")
			r.run()
			after(time.Second)
			app.mu.Lock()
			app.handle = func(context.Context, *queue.Message) queue.Result {
				return queue.Result{Outcome: queue.Throttled, RetryAfter: pause}
			}
			app.mu.Unlock()
			after(200 * ms)
			s := r.w.Status()
			if s.Prefetched+s.Postponed < 10 || s.Counts.Returned > 0 {
				t.Errorf("pause of %v: %d prefetched, %d postponed, %d returned", pause, s.Prefetched, s.Postponed,
					s.Counts.Returned)
			}
			app.mu.Lock()
			app.handle = nil
			app.mu.Unlock()
			after(5 * time.Minute)
			r.place(queuetest.FakeDeleted, 3000)
			r.stop()
		})
	}
}

func TestPauseWhileThrottledReturnsMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: done(20 * ms)}
		r := prepare(t, queuetest.NewFake(&queuetest.FakeOptions{Latency: 20 * ms}), app, &Options{Concurrency: 10})
		r.send(3000, "")
		r.run()
		after(time.Second)
		app.mu.Lock()
		app.handle = throttledApp
		app.mu.Unlock()
		after(200 * ms)
		if s := r.w.Status(); s.Prefetched+s.Postponed == 0 {
			t.Fatal("no message was prefetched, so the test proves nothing")
		}
		r.w.Pause("for a test")
		after(200 * ms)
		if s := r.w.Status(); s.Prefetched+s.Postponed != 0 || s.Counts.Returned == 0 {
			t.Errorf("%d prefetched, %d returned", s.Prefetched, s.Counts.Returned)
		}
		r.stop()
	})
}
