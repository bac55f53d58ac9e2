package worker

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type trialLimiter struct {
	mu     sync.Mutex
	pause  time.Duration
	until  time.Time
	trying bool
	closed bool
	begun  int
}

func (l *trialLimiter) Acquire(now time.Time, n int) (uint64, time.Duration, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
	case l.until.IsZero():
		l.until = now.Add(l.pause)
		return 0, l.pause, "breaker"
	case now.Before(l.until):
		return 0, l.until.Sub(now), "breaker"
	case l.trying:
		return 0, 0, "breaker"
	}
	l.trying = true
	l.begun += n
	return 1, 0, ""
}

func (l *trialLimiter) Release(_ uint64, now time.Time, results ...queue.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying, l.until = false, now.Add(l.pause)
	l.closed = l.closed || slices.ContainsFunc(results, func(r queue.Result) bool { return r.Outcome == queue.Done })
}

func (l *trialLimiter) Room(now time.Time, d time.Duration) (int, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return 1000, ""
	case l.trying || l.until.Sub(now) > d:
		return 0, "breaker"
	}
	return 1, "breaker"
}

func sharing(l Limiter, opts []*Options) []*Options {
	for _, o := range opts {
		o.Limiter = l
	}
	return opts
}

func equalWeights(n int) []*Options {
	w := make([]int, n)
	for i := range w {
		w[i] = 1
	}
	return weights(w...)
}

func cost(r *harness, ids []string) (all, most int) {
	for _, id := range ids {
		m, _ := r.fake.Message(id)
		all, most = all+m.Receives, max(most, m.Receives)
	}
	return all, most
}

// Messages received while the limiter refuses would be returned, which uses up a receive.
func TestSharedLimiterCostsNoReceives(t *testing.T) {
	t.Parallel()
	slow := func() Limiter { return &testLimiter{rate: 0.1, burst: 1} }
	halfOpen := func() Limiter { return &trialLimiter{pause: 10 * time.Second} }
	for _, tt := range []struct {
		name    string
		limiter func() Limiter
		opts    []*Options
		early   bool // sent before the workers start
		app     func(context.Context, *queue.Message) queue.Result
		latency time.Duration
	}{
		{"rate, weighted", slow, equalWeights(15), false, nil, 3 * ms},
		{"rate, weighted, from the start", slow, equalWeights(15), true, nil, 3 * ms},
		{"rate, strict", slow, weights(make([]int, 15)...), false, nil, 3 * ms},
		{"rate, strict, from the start", slow, weights(make([]int, 15)...), true, nil, 3 * ms},
		{"rate, a slow server", slow, equalWeights(15), false, nil, 600 * ms},
		{"half-open", halfOpen, equalWeights(15), false, failed, 3 * ms},
		{"half-open, from the start", halfOpen, equalWeights(15), true, failed, 3 * ms},
		{"half-open, strict", halfOpen, weights(make([]int, 15)...), false, failed, 3 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := tt.limiter()
				c := poolOf(t, nil, &queuetest.FakeOptions{MaxReceives: 4, Latency: tt.latency}, sharing(l, tt.opts)...)
				c.every(tt.app)
				ids := map[*harness][]string{}
				if tt.early {
					for _, r := range c.all {
						ids[r] = r.send(3, "")
					}
				}
				c.run()
				after(3 * time.Second)
				if !tt.early {
					for _, r := range c.all {
						ids[r] = r.send(3, "")
					}
				}
				after(200 * time.Second)
				all, most, dead, polls := 0, 0, 0, 0
				for r, of := range ids {
					n, one := cost(r, of)
					all, most, dead = all+n, max(most, one), dead+r.fake.Count(queuetest.FakeDead)
					polls += r.fake.Calls(queuetest.FakeReceive)
				}
				delivered := len(c.seen())
				t.Logf("%d receives of messages for %d deliveries, %d of one, %d dead, %d calls", all, delivered, most, dead, polls)
				if delivered < 15 || all > 2*delivered || most > 3 || dead > 0 {
					t.Errorf("%d receives for %d deliveries, %d of one message, %d dead letters", all, delivered, most, dead)
				}
				for _, r := range c.all {
					r.abort()
					r.drain()
					<-r.ended
				}
			})
		})
	}
}

func TestIdleQueuesUnderASharedLimiter(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]*Options{"weighted": equalWeights(15), "strict": weights(make([]int, 15)...)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := poolOf(t, nil, &queuetest.FakeOptions{Latency: 3 * ms}, sharing(&testLimiter{rate: 0.1, burst: 1}, opts)...)
				c.run()
				after(30 * time.Second)
				calls := c.receives()
				after(60 * time.Second)
				if got := c.receives() - calls; got < 30 || got > 90 {
					t.Errorf("%d receives of 15 idle queues in a minute, want about three of each", got)
				}
				for i, name := range []string{"o", "a", "h"} {
					after(15 * time.Second)
					c.by[name].send(1, "")
					after(time.Second)
					if got := len(c.seen()); got != i+1 {
						t.Errorf("a second after number %d was sent to %s, %d are delivered", i+1, name, got)
					}
				}
				c.stop()
			})
		})
	}
}

func TestOrderUnderASharedLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, nil, &queuetest.FakeOptions{Latency: 3 * ms},
			sharing(&testLimiter{rate: 0.1, burst: 1}, weights(0, 0, 0))...)
		c.by["b"].send(30, "")
		c.by["c"].send(30, "")
		c.run()
		for i := range 3 {
			after(47 * time.Second)
			c.by["a"].send(1, "")
			after(21 * time.Second)
			if got := c.posts("a"); got != i+1 {
				t.Errorf("%d of %d messages of the first queue are delivered after two turns", got, i+1)
			}
		}
		if b, others := c.posts("b"), c.posts("c"); b < 15 || others > 0 {
			t.Errorf("%d deliveries of the second queue, %d of the third", b, others)
		}
		for _, r := range c.all {
			r.abort()
			r.drain()
			<-r.ended
		}
	})
}

func TestLimitersOfTwoTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opts := append(sharing(&testLimiter{rate: 0.1, burst: 1}, weights(1, 1)),
			sharing(&testLimiter{rate: 10, burst: 10}, weights(1, 1))...)
		c := poolOf(t, &PoolOptions{Concurrency: 4}, &queuetest.FakeOptions{Latency: 3 * ms}, opts...)
		for _, r := range c.all {
			r.send(300, "")
		}
		c.run()
		after(20 * time.Second)
		slow, fast := c.posts("a")+c.posts("b"), c.posts("c")+c.posts("d")
		if slow < 2 || slow > 3 || fast < 190 || fast > 211 {
			t.Errorf("%d deliveries at 0.1 a second and %d at 10 a second in 20 s", slow, fast)
		}
		for _, r := range c.all {
			r.abort()
			r.drain()
			<-r.ended
		}
	})
}

// A lower queue's messages could not start, and returns would use up receives.
func TestStrictOrderReceivesNothingBelowWhileTheRateIsUsedUp(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{2, 20, 50, 300} {
		t.Run(strconv.FormatFloat(rate, 'g', -1, 64), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := poolOf(t, nil, &queuetest.FakeOptions{Latency: 3 * ms},
					sharing(&testLimiter{rate: rate, burst: max(rate/10, 1)}, weights(0, 0))...)
				c.by["a"].send(int(rate)*40, "")
				below := c.by["b"].send(20, "")
				c.run()
				after(30 * time.Second)
				got, _ := cost(c.by["b"], below)
				if a := c.posts("a"); a < int(rate)*29 || got > 0 {
					t.Errorf("%d deliveries of the first queue in 30 s; %d receives of messages of the second, want 0", a, got)
				}
				after(15 * time.Second)
				got, _ = cost(c.by["b"], below)
				if b := c.posts("b"); b < min(int(rate), 20) || got > b+c.by["b"].w.Status().Prefetched {
					t.Errorf("after the first queue was empty: %d deliveries of the second, %d receives", b, got)
				}
				for _, r := range c.all {
					r.abort()
					r.drain()
					<-r.ended
				}
			})
		})
	}
}
