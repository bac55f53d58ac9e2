package worker

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

const ms = time.Millisecond

func TestSharesOfThreeFullQueues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		slots      int
		api, think time.Duration
		weights    []int
		want       []float64
		floor      float64 // minimum throughput in percent of the slots' maximum
	}{
		{10, 10 * ms, 10 * ms, []int{3, 2, 1}, []float64{50, 33.3, 16.7}, 90},
		{50, 10 * ms, 10 * ms, []int{3, 2, 1}, []float64{50, 33.3, 16.7}, 90},
		{10, 0, 5 * ms, []int{3, 2, 1}, []float64{50, 33.3, 16.7}, 97},
		{10, 10 * ms, 3 * time.Second, []int{3, 2, 1}, []float64{50, 33.3, 16.7}, 97},
		{1, 10 * ms, 20 * ms, []int{3, 2, 1}, []float64{50, 33.3, 16.7}, 90},
		{10, 10 * ms, 10 * ms, []int{1, 1, 1}, []float64{33.3, 33.3, 33.3}, 90},
	} {
		t.Run(fmt.Sprintf("%d slots, API %v, think %v, %v", tt.slots, tt.api, tt.think, tt.weights), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const n = 600
				c := poolOf(t, &PoolOptions{Concurrency: tt.slots}, &queuetest.FakeOptions{Latency: tt.api},
					weights(tt.weights...)...)
				c.every(done(tt.think))
				for _, r := range c.all {
					r.send(4000, "")
				}
				begin := time.Now()
				c.run()
				for len(c.seen()) < 3*n {
					after(100 * ms)
				}
				shares := c.shares(n)
				for i, want := range tt.want {
					got := 100 * float64(shares[string(rune('a'+i))]) / n
					if math.Abs(got-want) > 5 {
						t.Errorf("queue %c got %.1f %% of the first %d, want %.1f", 'a'+i, got, n, want)
					}
				}
				took := c.seen()[3*n-1].at.Sub(begin)
				if ideal := tt.think * 3 * n / time.Duration(tt.slots); 100*ideal.Seconds()/took.Seconds() < tt.floor {
					t.Errorf("%.1f %% of the ceiling, want %.0f", 100*ideal.Seconds()/took.Seconds(), tt.floor)
				} else {
					t.Logf("%.1f %% of the ceiling, shares %v", 100*ideal.Seconds()/took.Seconds(), shares)
				}
				if c.most > tt.slots {
					t.Errorf("%d deliveries at once, %d slots", c.most, tt.slots)
				}
				c.every(nil)
				after(10 * time.Minute)
				for _, r := range c.all {
					r.place(queuetest.FakeDeleted, 4000)
				}
				c.stop()
			})
		})
	}
}

func TestStrictOrderLeavesTheLowerQueueAlone(t *testing.T) {
	t.Parallel()
	for _, think := range []time.Duration{5 * ms, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := poolOf(t, &PoolOptions{Concurrency: 10}, &queuetest.FakeOptions{Latency: 10 * ms, KeepLog: true}, &Options{},
				&Options{}, &Options{})
			c.every(done(think))
			for _, r := range c.all {
				r.send(200, "")
			}
			c.run()
			for len(c.seen()) < 600 {
				after(50 * ms)
			}
			seen := c.seen()
			for i, name := range []string{"a", "b", "c"} {
				for _, b := range seen[200*i : 200*(i+1)] {
					if b.queue != name {
						t.Fatalf("think %v: a message of %s within the turns of %s", think, b.queue, name)
					}
				}
				if i > 0 {
					last, first := seen[200*i-1].at, c.by[name].fake.Log()
					for _, call := range first {
						if call.Action == queuetest.FakeReceive && call.At.Before(last) {
							t.Errorf("think %v: %s was received from %v before the last message above it began", think, name,
								last.Sub(call.At))
						}
					}
				}
			}
			after(time.Minute)
			c.stop()
		})
	}
}

func TestStrictOrderIsWorkConserving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Concurrency: 10}, &queuetest.FakeOptions{Latency: 10 * ms}, &Options{}, &Options{})
		c.every(done(10 * ms))
		c.by["b"].send(20000, "")
		c.run()
		after(2 * time.Second)
		before := c.posts("b")
		var waits time.Duration
		for range 100 {
			sent := time.Now()
			c.by["a"].send(1, "")
			after(50 * ms)
			seen := c.seen()
			for i := len(seen) - 1; i >= 0; i-- {
				if seen[i].queue == "a" {
					waits = max(waits, seen[i].at.Sub(sent))
					break
				}
			}
		}
		served := c.posts("b") - before
		t.Logf("the lower queue got %d of %d turns, the higher waited for %v at most", served, 6000, waits)
		if c.posts("a") != 100 || waits > 30*ms {
			t.Errorf("the higher queue got %d of 100 turns, waiting up to %v", c.posts("a"), waits)
		}
		if served < 4500 {
			t.Errorf("the lower queue got %d turns in 6 s, want more than three quarters of 6000:\n%v", served, c)
		}
		c.every(nil)
		after(time.Minute)
		c.stop()
	})
}

func TestIdlePoolCostsOnePollPerQueue(t *testing.T) {
	t.Parallel()
	impatient := weights(0, 0, 0)
	for _, o := range impatient {
		o.MaxWait = time.Second
	}
	for _, members := range [][]*Options{weights(3, 2, 1), weights(0, 0, 0), weights(1, 1, 1), impatient} {
		synctest.Test(t, func(t *testing.T) {
			c := poolOf(t, nil, nil, members...)
			c.every(done(5 * ms))
			c.run()
			for _, r := range c.all {
				r.send(100, "")
			}
			after(2 * time.Minute)
			before := c.receives()
			after(10 * time.Minute)
			if got := c.receives() - before; got > 90 {
				t.Errorf("%d receives in 10 idle minutes of 3 queues, want 90", got)
			}
			for name, r := range c.by {
				after(7 * time.Second)
				sent := time.Now()
				r.send(1, "")
				after(ms)
				if seen := c.seen(); seen[len(seen)-1].queue != name || seen[len(seen)-1].at != sent {
					t.Errorf("a message on %s did not start at once", name)
				}
			}
			c.stop()
		})
	}
}

func TestPausedQueueTakesNoShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Concurrency: 4}, &queuetest.FakeOptions{Latency: 2 * ms}, &Options{}, &Options{})
		c.every(done(20 * ms))
		for _, r := range c.all {
			r.send(1000, "")
		}
		c.run()
		after(time.Second)
		c.by["a"].w.Pause("for a test")
		after(100 * ms)
		paused, served := c.posts("a"), c.posts("b")
		after(time.Second)
		if got := c.posts("a"); got != paused {
			t.Errorf("%d deliveries of a paused queue", got-paused)
		}
		if got := c.posts("b") - served; got < 180 {
			t.Errorf("the queue below a paused one got %d turns in a second, want 200", got)
		}
		if s := c.by["a"].w.Status(); s.TurnShare == 0 || s.Receiving {
			t.Errorf("status of the paused queue: %+v", s)
		}
		c.by["a"].w.Resume()
		after(100 * ms)
		resumed, served := c.posts("a"), c.posts("b")
		after(time.Second)
		if got := c.posts("a") - resumed; got < 180 {
			t.Errorf("a resumed queue got %d turns in a second, want 200", got)
		}
		if got := c.posts("b") - served; got > 5 {
			t.Errorf("below it %d messages began", got)
		}
		c.every(nil)
		after(time.Minute)
		c.stop()
	})
}

func TestTroubleOfOneQueueDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(r *harness){
		"receives denied": func(r *harness) {
			r.fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Err: queue.ErrDenied} })
		},
		"deletes refused": func(r *harness) {
			r.fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
				if c.Action == queuetest.FakeDelete {
					return queuetest.FakeFault{Err: queue.ErrDenied}
				}
				return queuetest.FakeFault{}
			})
		},
		"no answers": func(r *harness) {
			r.fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Latency: time.Hour} })
		},
		"app down":   func(r *harness) { r.app.setDown(true) },
		"not ready":  func(r *harness) { r.w.Gate(false, "starting") },
		"stopped":    func(r *harness) {},
		"throttling": func(r *harness) { r.app.handle = throttledApp },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := poolOf(t, &PoolOptions{Concurrency: 10}, &queuetest.FakeOptions{Latency: 2 * ms}, &Options{}, &Options{})
				c.every(done(20 * ms))
				c.by["a"].send(100, "")
				c.by["b"].send(5000, "")
				trouble(c.by["a"])
				c.run()
				if name == "stopped" {
					c.by["a"].drain()
				}
				after(5 * time.Second)
				before := c.posts("b")
				after(4 * time.Second)
				if got := c.posts("b") - before; got < 1800 {
					t.Errorf("the other queue got %d turns in 4 s, want 2000:\n%v", got, c)
				}
				for _, r := range c.all {
					r.drain()
				}
				after(time.Minute)
				for _, r := range c.all {
					r.abort()
				}
				for _, r := range c.all {
					<-r.ended
				}
			})
		})
	}
}

func TestOwnMostInsideThePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Concurrency: 10}, &queuetest.FakeOptions{Latency: 2 * ms}, &Options{Concurrency: 3},
			&Options{})
		c.every(done(50 * ms))
		for _, r := range c.all {
			r.send(2000, "")
		}
		c.run()
		after(10 * time.Second)
		if got := c.by["a"].app.most; got != 3 {
			t.Errorf("%d deliveries at once of a queue that may have 3", got)
		}
		if got := c.posts("b"); got < 1300 {
			t.Errorf("the queue below got %d turns, want 7 slots' worth: 1400", got)
		}
		c.every(nil)
		after(time.Minute)
		c.stop()
	})
}

func TestMaxWaitLiftsAnOldMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Concurrency: 2}, &queuetest.FakeOptions{Latency: 2 * ms}, &Options{},
			&Options{MaxWait: time.Minute}, &Options{})
		c.every(done(time.Second))
		c.by["a"].send(2000, "")
		c.by["b"].send(20, "")
		c.by["c"].send(20, "")
		c.run()
		after(59 * time.Second)
		if got := c.posts("b"); got != 0 {
			t.Errorf("%d messages began before they were old enough", got)
		}
		after(time.Minute)
		if got := c.posts("b"); got != 20 {
			t.Errorf("%d of 20 old messages were lifted", got)
		}
		if got := c.posts("c"); got != 0 {
			t.Errorf("%d messages of a queue that nothing lifts", got)
		}
		if got := c.by["b"].w.Status().Counts.Promoted; got < 20 {
			t.Errorf("%d turns counted as lifted", got)
		}
		seen, inARow := c.seen(), 0
		for _, b := range seen {
			if b.queue != "b" {
				inARow = 0
			} else if inARow++; inARow > 2 {
				t.Fatalf("three lifted messages in a row")
			}
		}
		c.every(nil)
		after(time.Minute)
		c.stop()
	})
}

func TestMaxWaitOfAllQueues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		slots   int
		api     time.Duration
		weights []int
		known   bool // the pool has received from the queues before
		older   string
		low     [2]int // range of the lower queue's turns among the first 160
	}{
		{"strict", 2, 2 * ms, []int{0, 0}, true, "b", [2]int{72, 80}},
		{"strict, slow receives", 10, 40 * ms, []int{0, 0}, true, "b", [2]int{70, 90}},
		{"strict, never heard of", 2, 2 * ms, []int{0, 0}, false, "b", [2]int{50, 64}},
		{"strict, the higher is older", 2, 2 * ms, []int{0, 0}, true, "a", [2]int{0, 3}},
		{"weights", 10, 40 * ms, []int{20, 1}, true, "b", [2]int{70, 95}},
		{"weights, the lighter is younger", 2, 2 * ms, []int{3, 1}, true, "a", [2]int{12, 28}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				members := weights(tt.weights...)
				for _, o := range members {
					o.MaxWait = time.Second
				}
				c := poolOf(t, &PoolOptions{Concurrency: tt.slots}, &queuetest.FakeOptions{Latency: tt.api}, members...)
				c.every(done(50 * ms))
				if tt.known {
					c.run()
					after(30 * time.Second)
					for _, r := range c.all {
						r.w.Pause("for a test")
					}
				}
				c.by[tt.older].send(300, "")
				after(2 * time.Second)
				for name, r := range c.by {
					if name != tt.older {
						r.send(300, "")
					}
				}
				after(2 * time.Second)
				if tt.known {
					for _, r := range c.all {
						r.w.Resume()
					}
				} else {
					c.run()
				}
				for len(c.seen()) < 160 {
					after(10 * ms)
				}
				if got := c.shares(160)["b"]; got < tt.low[0] || got > tt.low[1] {
					t.Errorf("the lower queue got %d of 160 turns, want %d to %d:\n%v", got, tt.low[0], tt.low[1], c)
				}
				c.every(nil)
				after(time.Minute)
				c.stop()
			})
		})
	}
}

func TestSleepAfterAWholeEmptyRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Sleep: 10 * time.Second}, nil, &Options{WaitTime: 5 * time.Second},
			&Options{WaitTime: 5 * time.Second})
		c.run()
		after(2 * time.Second)
		c.by["b"].send(1, "")
		after(time.Minute)
		before, rests, until := c.receives(), 0, time.Time{}
		for range 15 * 60 {
			after(time.Second)
			c.pool.mu.Lock()
			if !c.pool.restUntil.Equal(until) {
				until = c.pool.restUntil
				rests++
			}
			c.pool.mu.Unlock()
		}
		if got := c.receives() - before; got < 118 || got > 122 {
			t.Errorf("%d receives of two queues in 15 minutes, want two in 15 s", got)
		}
		if rests < 59 || rests > 62 {
			t.Errorf("%d rests in 15 minutes, want one in 15 s", rests)
		}
		c.by["a"].send(1, "")
		after(11 * time.Second)
		if c.posts("a") != 1 {
			t.Errorf("a message sent during a rest did not start after it")
		}
		c.stop()
	})
}

func TestOpenPollOfALowerQueueIsHarmless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Concurrency: 2}, nil, &Options{}, &Options{})
		c.every(done(time.Minute))
		c.run()
		after(time.Second)
		c.by["a"].send(2, "")
		after(time.Second)
		c.by["b"].send(2, "")
		after(time.Second)
		if s := c.by["b"].w.Status(); s.Prefetched != 2 || s.InWork != 0 || s.Oldest != time.Second {
			t.Errorf("%d prefetched, %d in flight, the oldest %v old; want 2, 0 and 1s", s.Prefetched, s.InWork, s.Oldest)
		}
		after(10 * time.Second)
		c.by["b"].place(queuetest.FakeVisible, 2)
		calls := c.receives()
		after(40 * time.Second)
		if got := c.receives() - calls; got > 0 {
			t.Errorf("%d receives while every slot is busy for long", got)
		}
		after(3 * time.Minute)
		c.by["b"].place(queuetest.FakeDeleted, 2)
		if s := c.by["b"].w.Status(); s.LongestWait != 0 && s.LongestWait < 50*time.Second {
			t.Errorf("longest wait %v", s.LongestWait)
		}
		c.stop()
	})
}

func TestFIFOAndStandardQueuesInOnePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Concurrency: 5}, &queuetest.FakeOptions{Latency: 4 * ms}, &Options{FIFO: true},
			&Options{})
		c.every(done(20 * ms))
		for g := range 3 {
			c.by["a"].send(50, fmt.Sprint("g", g))
		}
		c.by["b"].send(1000, "")
		c.run()
		after(5 * time.Second)
		c.by["a"].place(queuetest.FakeDeleted, 150)
		if got := c.posts("b"); got < 250 {
			t.Errorf("beside a FIFO queue of three groups the other got %d turns in 5 s of 5 slots", got)
		}
		c.by["a"].orderOf(t.Errorf)
		after(time.Minute)
		c.by["b"].place(queuetest.FakeDeleted, 1000)
		c.stop()
	})
}

func TestAbortOfOneWorkerKeepsThePoolRight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, &PoolOptions{Concurrency: 4}, nil, weights(1, 1)...)
		c.every(done(time.Minute))
		for _, r := range c.all {
			r.send(10, "")
		}
		c.run()
		after(time.Second)
		c.by["a"].abort()
		<-c.by["a"].ended
		after(time.Second)
		c.pool.mu.Lock()
		if c.pool.inWork != 4 || len(c.pool.lanes) != 1 {
			t.Errorf("after one worker was aborted, %d of 4 slots are in use by %v, want all by the other", c.pool.inWork, c.pool.lanes)
		}
		c.pool.mu.Unlock()
		c.every(nil)
		c.by["b"].drain()
		if err := <-c.by["b"].ended; err != nil {
			t.Error(err)
		}
		c.by["b"].abort()
	})
}

func throttledApp(context.Context, *queue.Message) queue.Result {
	return queue.Result{Outcome: queue.Throttled, Status: 429, Reason: "HTTP 429"}
}

func TestPrefetchOfAPoolIsShared(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name    string
		weights []int
		dry     int
		want    int
	}{
		{"one queue: as without a pool", []int{1}, 0, 85},
		{"half of the turns", []int{3, 2, 1}, 0, 48},
		{"three fifths, the last is empty", []int{3, 2, 1}, 1, 55},
		{"all others are empty", []int{3, 2, 1}, 2, 85},
		{"strict order: the first has all", []int{0, 0}, 0, 85},
	} {
		p := NewPool(nil)
		*p.pace = pace{service: 10 * ms, finished: now}
		for i, weight := range tt.weights {
			w := New(nil, instant{}, &Options{Pool: p, Weight: weight})
			w.pace.roundTrip, w.pace.completed = 10*ms, 100
			w.lane.backlog.empty, w.lane.backlog.emptyAt = i >= len(tt.weights)-tt.dry, now
		}
		if got := p.lanes[0].prefetch(now); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestNothingIsPrefetchedFromAQueueOfUnknownSpeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := poolOf(t, nil, &queuetest.FakeOptions{Latency: 5 * ms}, weights(1, 1)...)
		fast, slow := c.by["a"], c.by["b"]
		fast.app.handle, slow.app.handle = done(ms), done(5*time.Second)
		fast.send(5000, "")
		c.run()
		after(200 * ms)
		ids := slow.send(200, "")
		most := 0
		for range 450 {
			after(10 * ms)
			most = max(most, slow.w.Status().Prefetched)
		}
		if most > 0 {
			t.Errorf("%d messages were prefetched before the first of them ended", most)
		}
		after(10 * time.Minute)
		slow.place(queuetest.FakeDeleted, 200)
		for _, id := range ids {
			if m, _ := slow.fake.Message(id); m.Receives != 1 {
				t.Errorf("%s was received %d times, want once", id, m.Receives)
			}
		}
		c.stop()
	})
}

// Another queue's first response may end a wait and measure no round trip.
func TestRetriesDoNotWaitForOtherQueuesFirstLongPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		members := weights(3, 2, 1)
		for _, o := range members {
			o.ErrorVisibilityTimeout = ptr(2 * time.Second)
			o.WaitTime = 20 * time.Second
		}
		c := poolOf(t, &PoolOptions{Concurrency: 8}, nil, members...)
		c.every(failed)
		c.run()
		after(8 * time.Second)
		c.by["a"].send(1, "")
		after(5 * time.Second)
		if got := c.posts("a"); got != 3 {
			t.Errorf("%d attempts within 5 s with 2 s between them, want 3\n%v", got, c)
		}
		c.stop()
	})
}
