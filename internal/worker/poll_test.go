package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

func TestEachMessageIsPostedOnceAndDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{handle: done(10 * time.Millisecond)}, nil)
		r.send(500, "")
		after(5 * time.Second)
		r.place(queuetest.FakeDeleted, 500)
		for id, posts := range r.app.byID() {
			if len(posts) != 1 {
				t.Errorf("%s was posted %d times", id, len(posts))
			}
		}
		r.stop()
	})
}

func TestIdleQueueCostsThreeCallsAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{}, nil)
		r.send(200, "")
		after(2 * time.Minute)
		before := r.fake.Calls(queuetest.FakeReceive)
		deletes := r.fake.Calls(queuetest.FakeDelete)
		after(10 * time.Minute)
		if got := r.fake.Calls(queuetest.FakeReceive) - before; got != 30 {
			t.Errorf("%d receives in 10 idle minutes, want 30", got)
		}
		if got := r.fake.Calls(queuetest.FakeDelete) - deletes + r.fake.Calls(queuetest.FakeChangeVisibility); got != 0 {
			t.Errorf("%d other calls in 10 idle minutes", got)
		}
		if got := r.fake.OpenReceives(); got != 1 {
			t.Errorf("%d receives open, want one", got)
		}
		r.stop()
	})
}

// Only calls and deliveries take virtual time, so the slots determine the maximum throughput.
func TestFullQueueKeepsEverySlotBusy(t *testing.T) {
	t.Parallel()
	const n = 20000
	for _, tt := range []struct {
		c          int
		api, think time.Duration
	}{
		{10, 10 * time.Millisecond, 10 * time.Millisecond},
		{50, 10 * time.Millisecond, 10 * time.Millisecond},
		{10, 5 * time.Millisecond, time.Millisecond},
		{50, 50 * time.Millisecond, 20 * time.Millisecond},
	} {
		c, api, think := tt.c, tt.api, tt.think
		t.Run(fmt.Sprintf("%d slots, API %v, think %v", c, api, think), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := queuetest.NewFake(nil)
				send(t, fake, n, "")
				slow := queuetest.FakeFault{Latency: api}
				fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault { return slow })
				r := prepare(t, fake, &testApp{handle: done(think)}, &Options{Concurrency: c})
				begin := time.Now()
				r.run()
				for fake.Count(queuetest.FakeDeleted) < n {
					after(100 * time.Millisecond)
				}
				posts := r.app.seen()
				took := posts[len(posts)-1].end.Sub(begin)
				ideal := think * n / time.Duration(c)
				t.Logf("%d messages in %v, ideal %v, %+v", n, took, ideal, r.w.Status().Counts)
				if ceiling := ideal.Seconds() / took.Seconds(); ceiling < 0.97 {
					t.Errorf("%.1f %% of the ceiling, want 97 %%", 100*ceiling)
				}
				if r.app.most > c {
					t.Errorf("%d deliveries at once, at most %d allowed", r.app.most, c)
				}
				counts := r.w.Status().Counts
				if calls := float64(calls(fake)) / n; calls > 0.205 {
					t.Errorf("%.3f calls per message, want 0.20", calls)
				}
				if counts.Returned+counts.VisibilityExpired+counts.Duplicates > 0 {
					t.Errorf("undisturbed work gave back, lapsed or doubled: %+v", counts)
				}
				r.stop()
			})
		})
	}
}

func calls(fake *queuetest.Fake) int {
	return fake.Calls(queuetest.FakeReceive) + fake.Calls(queuetest.FakeDelete) + fake.Calls(queuetest.FakeChangeVisibility)
}

func TestCallsPerMessageOfAThinStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(&queuetest.FakeOptions{Latency: 10 * time.Millisecond}),
			&testApp{handle: done(5 * time.Millisecond)}, nil)
		const n = 1000
		for range n {
			go r.fake.Send(t.Context(), make([]queue.Outgoing, 1))
			after(20 * time.Millisecond)
		}
		after(time.Second)
		r.place(queuetest.FakeDeleted, n)
		c := r.w.Status().Counts
		if calls := float64(calls(r.fake)) / n; calls > 1.2 {
			t.Errorf("%.2f calls per message at 50 messages a second, want at most 1.2: %+v", calls, c)
		}
		r.stop()
	})
}

func TestBurstSpreadsOverFreeSlotsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{handle: done(time.Second)}, &Options{Concurrency: 10})
		after(30 * time.Second)
		sent := time.Now()
		r.send(10, "")
		after(5 * time.Second)
		for _, p := range r.app.seen() {
			if p.start != sent {
				t.Errorf("%s began %v after its send, want at once", p.id, p.start.Sub(sent))
			}
		}
		r.stop()
	})
}

func TestSlowAppGetsNothingPrefetched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{handle: done(2 * time.Second)}, &Options{Concurrency: 5})
		r.send(100, "")
		after(13 * time.Second)
		s := r.w.Status()
		if s.InWork != 5 || s.Prefetched != 0 {
			t.Errorf("%d in work and %d prefetched, want 5 and 0", s.InWork, s.Prefetched)
		}
		if got := r.fake.Count(queuetest.FakeInFlight); got > 15 { // includes messages whose deletes linger
			t.Errorf("%d in flight", got)
		}
		after(time.Minute)
		r.place(queuetest.FakeDeleted, 100)
		r.stop()
	})
}

func TestPrefetchedMessagesAreGivenBackWhenTheAppStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: done(20 * time.Millisecond)}
		fake := queuetest.NewFake(nil)
		send(t, fake, 2000, "")
		fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault {
			return queuetest.FakeFault{Latency: 20 * time.Millisecond}
		})
		r := start(t, fake, app, &Options{Concurrency: 10})
		after(time.Second)
		app.mu.Lock()
		app.handle = done(5 * time.Minute)
		app.mu.Unlock()
		after(5 * time.Second)
		held := r.w.Status().Prefetched
		if held == 0 {
			t.Fatal("no message was prefetched, so the test proves nothing")
		}
		after(10 * time.Second)
		s := r.w.Status()
		if s.Prefetched != 0 || s.Counts.Returned < int64(held) {
			t.Errorf("after 10 s %d are held and %d given back, want 0 and at least %d", s.Prefetched, s.Counts.Returned, held)
		}
		if got := r.fake.Count(queuetest.FakeInFlight); got != 10 {
			t.Errorf("%d in flight, want the 10 in work", got)
		}
		calls := r.fake.Calls(queuetest.FakeReceive)
		after(time.Minute)
		if got := r.fake.Calls(queuetest.FakeReceive); got != calls {
			t.Errorf("%d receives while every slot is busy", got-calls)
		}
		app.mu.Lock()
		app.handle = nil
		app.mu.Unlock()
		after(10 * time.Minute)
		r.place(queuetest.FakeDeleted, 2000)
		r.stop()
	})
}

func TestPrefetchStopsAtItsBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		large := string(make([]byte, 1<<20))
		for range 100 {
			if _, err := fake.Send(t.Context(), []queue.Outgoing{{Body: large}}); err != nil {
				t.Fatal(err)
			}
		}
		fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault {
			return queuetest.FakeFault{Latency: 100 * time.Millisecond}
		})
		app := &testApp{handle: done(10 * time.Millisecond)}
		most := 0
		r := prepare(t, fake, app, &Options{Concurrency: 10, PrefetchBytes: 3 << 20})
		r.run()
		for range 2000 {
			after(time.Millisecond)
			most = max(most, r.w.Status().Prefetched)
		}
		r.place(queuetest.FakeDeleted, 100)
		if most > 13 {
			t.Errorf("%d messages of 1 MiB were prefetched, 3 MiB allowed", most)
		}
		r.stop()
	})
}

func TestRoom(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fast := pace{service: 10 * time.Millisecond, completed: 100, roundTrip: 10 * time.Millisecond, finished: now}
	slow := pace{service: 5 * time.Second, finished: now}
	tests := []struct {
		name                                        string
		pace                                        pace
		limit, inWork, asked, turning, bytes, ready int
		want                                        int
	}{
		{name: "idle", pace: slow, limit: 10, want: 10},
		{name: "one receive open", pace: slow, limit: 10, asked: 10, want: 0},
		{name: "a few slots free", pace: slow, limit: 10, inWork: 7, want: 3},
		{name: "all busy, slow app", pace: slow, limit: 10, inWork: 10, want: 0},
		{name: "all busy, fast app", pace: fast, limit: 10, inWork: 10, want: 10},
		{name: "room for ten more", pace: fast, limit: 10, inWork: 10, ready: 15, want: 10},
		{name: "not for ten: later", pace: fast, limit: 10, inWork: 10, ready: 16, want: 0},
		{name: "more than a receive can bring", pace: slow, limit: 10, inWork: 0, want: 10},
		{name: "too many bytes are held: only for free slots", pace: fast, limit: 10, inWork: 6, ready: 1, bytes: 16 << 20,
			want: 3},
		{name: "slow start: no prefetch", pace: fast, limit: 4, inWork: 3, want: 1},
		{name: "groups between two messages", pace: slow, limit: 10, inWork: 4, turning: 4, want: 2},
	}
	for _, tt := range tests {
		w := New(queuetest.NewFake(nil), &testApp{}, &Options{Concurrency: 10})
		*w.pace, w.core.limit, w.core.inWork, w.poller.asked, w.messages.turning = tt.pace, tt.limit, tt.inWork, tt.asked, tt.turning
		for range tt.ready {
			w.messages.ready.push(&held{})
		}
		w.messages.ready.bytes = tt.bytes
		if got := w.poller.room(now); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestPrefetchNeverEatsTheVisibility(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{0, 100 * time.Millisecond, 2 * time.Second} {
		for _, visibility := range []time.Duration{10 * time.Second, 300 * time.Second} {
			t.Run(fmt.Sprint(latency, visibility), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					fake := queuetest.NewFake(&queuetest.FakeOptions{Latency: latency})
					var mu sync.Mutex
					n := 0
					app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
						mu.Lock()
						n++
						d := time.Duration(n%7) * 150 * time.Millisecond
						mu.Unlock()
						return done(d)(ctx, m)
					}}
					r := start(t, fake, app, &Options{Concurrency: 10, VisibilityTimeout: visibility})
					r.send(1000, "")
					after(5 * time.Minute)
					r.place(queuetest.FakeDeleted, 1000)
					for _, p := range r.app.seen() {
						if p.left < visibility/2 {
							t.Errorf("%s began with %v of %v left", p.id, p.left, visibility)
						}
					}
					r.stop()
				})
			})
		}
	}
}

func TestFailedReceivesBackOff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		err         error
		atMost      int
		resumeAfter time.Duration
		permanent   bool
	}{
		{"throttled", queue.ErrThrottled, 100, 15 * time.Second, false},
		{"unreachable", queue.ErrUnreachable, 100, 15 * time.Second, false},
		{"access denied", queue.ErrDenied, 50, 30 * time.Second, true},
		{"no such queue", queue.ErrNoQueue, 50, 30 * time.Second, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := queuetest.NewFake(nil)
				fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
					return queuetest.FakeFault{Err: tt.err}
				})
				var mu sync.Mutex
				var failures []PollFailed
				r := start(t, fake, &testApp{}, &Options{Events: &Events{PollFailed: func(f PollFailed) {
					mu.Lock()
					defer mu.Unlock()
					failures = append(failures, f)
				}}})
				after(10 * time.Minute)
				calls := fake.Calls(queuetest.FakeReceive)
				if calls > tt.atMost || calls < 20 {
					t.Errorf("%d calls in ten minutes, want 20 to %d", calls, tt.atMost)
				}
				mu.Lock()
				last := failures[len(failures)-1]
				if len(failures) != calls || last.Failures != calls || last.Permanent != tt.permanent ||
					last.RetryIn > tt.resumeAfter {
					t.Errorf("%d events for %d calls, the last %+v", len(failures), calls, last)
				}
				mu.Unlock()
				if e := r.w.Status().LastError; e == nil || e.Action != "receive" || e.Err != tt.err {
					t.Errorf("last error: %+v", e)
				}
				fake.SetFault(nil)
				r.send(100, "")
				after(tt.resumeAfter + time.Second)
				r.place(queuetest.FakeDeleted, 100)
				r.stop()
			})
		})
	}
}

func TestReceivesThatFailTogetherCountOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := poller{want: 8}
	o := &openReceive{start: now.Add(-time.Second)}
	for range 8 {
		p.backOff(o, uncertain, now, 0)
	}
	if p.fails != 1 || p.want != 1 || !p.notBefore.Equal(now.Add(failedReceiveFirst)) {
		t.Errorf("%d failures, %d wanted, next in %v", p.fails, p.want, p.notBefore.Sub(now))
	}
}

func TestLostReceiveResponseDelaysButDuplicatesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		fake.Fail(queuetest.FakeReceive, queuetest.FakeFault{Err: queue.ErrUnreachable, Apply: true})
		send(t, fake, 10, "")
		r := start(t, fake, &testApp{}, &Options{VisibilityTimeout: time.Minute})
		after(30 * time.Second)
		r.place(queuetest.FakeInFlight, 10)
		after(35 * time.Second)
		r.place(queuetest.FakeDeleted, 10)
		for id, posts := range r.app.byID() {
			if len(posts) != 1 || posts[0].receives != 2 {
				t.Errorf("%s: %+v", id, posts)
			}
		}
		r.stop()
	})
}

type deaf struct{ *queuetest.Fake }

func (d deaf) Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	req.Wait = nil
	return d.Fake.Receive(ctx, req)
}

func TestQueueThatDoesNotWaitIsNotHammered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := prepare(t, queuetest.NewFake(nil), &testApp{}, nil)
		r.w = New(deaf{r.fake}, r.app, nil)
		r.run()
		after(10 * time.Minute)
		if calls := r.fake.Calls(queuetest.FakeReceive); calls > 130 {
			t.Errorf("%d receives in ten idle minutes", calls)
		}
		r.send(30, "")
		after(6 * time.Second)
		r.place(queuetest.FakeDeleted, 30)
		r.stop()
	})
}

type expiries struct {
	*queuetest.Fake
	mu            sync.Mutex
	done, expired int
}

func (q *expiries) Delete(ctx context.Context, receipts []string) []error {
	q.mu.Lock()
	q.done += len(receipts)
	q.mu.Unlock()
	return q.Fake.Delete(ctx, receipts)
}

func (q *expiries) Expire(ctx context.Context, receipts []string) []error {
	q.mu.Lock()
	q.expired += len(receipts)
	q.mu.Unlock()
	return q.Fake.Expire(ctx, receipts)
}

func TestExpiredMessagesAreNotDeletedAsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &expiries{Fake: queuetest.NewFake(nil)}
		old := send(t, q.Fake, 7, "")
		if msgs, err := q.Receive(t.Context(),
			queue.ReceiveRequest{Max: 7, Visibility: ptr(time.Second)}); len(msgs) != 7 || err != nil {
			t.Fatal(msgs, err)
		}
		after(2 * time.Hour)
		young := send(t, q.Fake, 7, "")
		q.Fail(queuetest.FakeDelete, queuetest.FakeFault{Err: queue.ErrThrottled, Entries: []int{1}})
		r := prepare(t, q.Fake, &testApp{}, nil)
		r.w = New(q, r.app, &Options{Retention: time.Hour, DeleteLinger: time.Second})
		r.run()
		after(time.Minute)
		r.place(queuetest.FakeDeleted, 14)
		seen := r.app.byID()
		for i := range old {
			if len(seen[old[i]]) != 0 || len(seen[young[i]]) != 1 {
				t.Errorf("an expired message was posted %d times, another one %d times", len(seen[old[i]]), len(seen[young[i]]))
			}
		}
		if q.done+q.expired != 15 || q.done < 7 || q.expired < 7 {
			t.Errorf("%d deleted as done and %d as expired, want 7 each and one of them twice", q.done, q.expired)
		}
		r.stop()
	})
}

func TestFilteredMessagesAreDeletedUnposted(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"", "g"} {
		synctest.Test(t, func(t *testing.T) {
			var gone atomic.Int64
			var unwanted atomic.Pointer[map[string]bool]
			unwanted.Store(&map[string]bool{})
			r := prepare(t, queuetest.NewFake(nil), &testApp{}, &Options{FIFO: group != "",
				Events: &Events{Filtered: func(e Filtered) {
					if !(*unwanted.Load())[e.ID] || e.ReceiveCount != 1 {
						t.Errorf("filtered %+v", e)
					}
					gone.Add(1)
				}}})
			r.w.SetFilter(func(m *queue.Message) bool { return !(*unwanted.Load())[m.ID] })
			first := r.send(5, group)
			unwanted.Store(&map[string]bool{first[1]: true, first[2]: true})
			r.run()
			after(time.Minute)
			r.w.SetFilter(nil)
			second := r.send(2, group)
			after(time.Minute)
			r.w.SetFilter(func(*queue.Message) bool { return false })
			third := r.send(1, group)
			unwanted.Store(&map[string]bool{third[0]: true})
			after(time.Minute)
			r.place(queuetest.FakeDeleted, 8)
			seen := r.app.byID()
			for i, id := range slices.Concat(first, second, third) {
				want := 1
				if i == 1 || i == 2 || i == 7 {
					want = 0
				}
				if len(seen[id]) != want {
					t.Errorf("message %d was posted %d times, want %d", i, len(seen[id]), want)
				}
			}
			if c := r.w.Status().Counts; c.Filtered != 3 || gone.Load() != 3 || c.Done != 5 || c.Deleted != 8 {
				t.Errorf("counts: %+v, %d events", c, gone.Load())
			}
			r.stop()
		})
	}
}

func TestExpiredMessagesAreDeletedUnposted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var gone []Expired
		r := prepare(t, queuetest.NewFake(nil), &testApp{handle: failed}, &Options{
			Retention: time.Hour, VisibilityTimeout: time.Minute,
			Events: &Events{Expired: func(e Expired) {
				mu.Lock()
				defer mu.Unlock()
				gone = append(gone, e)
			}},
		})
		ids := r.send(3, "")
		time.Sleep(5 * time.Hour)
		r.run()
		after(59 * time.Minute)
		r.place(queuetest.FakeDeleted, 0)
		after(3 * time.Minute)
		r.place(queuetest.FakeDeleted, 3)
		if n := len(r.app.byID()[ids[0]]); n < 50 {
			t.Errorf("posted %d times in an hour, want about once a minute", n)
		}
		if len(gone) != 3 || gone[0].ReceiveCount < 50 || time.Since(gone[0].FirstReceivedAt) < time.Hour {
			t.Errorf("events: %+v", gone)
		}
		if c := r.w.Status().Counts; c.Expired != 3 || c.Deleted != 3 || c.Done != 0 {
			t.Errorf("counts: %+v", c)
		}
		r.stop()
	})
}

func TestDuplicateReceivesAreNotPosted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		stages := map[string]int{}
		app := &testApp{handle: done(10 * time.Second)}
		fake := queuetest.NewFake(nil)
		r := start(t, fake, app, &Options{Concurrency: 5, Events: &Events{Duplicate: func(d Duplicate) {
			mu.Lock()
			defer mu.Unlock()
			stages[d.Stage]++
		}}})
		ids := r.send(1, "")
		after(time.Second)
		for range 3 {
			fake.Redeliver(ids[0])
			after(time.Second)
		}
		after(10 * time.Second)
		r.place(queuetest.FakeDeleted, 1)
		if posts := app.byID()[ids[0]]; len(posts) != 1 || stages["posting"] != 3 {
			t.Errorf("posted %d times, duplicates %v", len(posts), stages)
		}
		r.stop()
	})
}

func TestAttemptsExcludeUnpostedReceives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var settled []Settled
		app := &testApp{handle: failed}
		r := start(t, queuetest.NewFake(nil), app, &Options{
			Backoff: Backoff{Min: 10 * time.Second, Max: time.Hour, Doublings: 10},
			Events: &Events{Settled: func(s Settled) {
				mu.Lock()
				defer mu.Unlock()
				settled = append(settled, s)
			}},
		})
		app.setDown(true)
		after(time.Second)
		app.setDown(false)
		r.send(1, "")
		after(probeLimit)
		app.setDown(true)
		after(15 * time.Second)
		app.setDown(false)
		after(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		for i, want := range []Settled{{ReceiveCount: 1, Attempt: 1, Status: 500}, {ReceiveCount: 2, Attempt: 2},
			{ReceiveCount: 3, Attempt: 2, Status: 500}, {ReceiveCount: 4, Attempt: 3, Status: 500}} {
			got := settled[i]
			if got.ReceiveCount != want.ReceiveCount || got.Attempt != want.Attempt || got.Status != want.Status {
				t.Errorf("delivery %d: got %+v, want %+v", i+1, got, want)
			}
		}
		if got := settled[3].NextRetry.Sub(settled[2].NextRetry); got < 40*time.Second || got > 41*time.Second {
			t.Errorf("the third attempt is followed by 40 s, got %v", got)
		}
		r.stop()
	})
}

// A returned message must be recognized even if the queue did not count the receive.
func TestWaitedKnowsReturnedMessages(t *testing.T) {
	t.Parallel()
	w, now := New(queuetest.NewFake(nil), &testApp{}, nil), time.Now()
	o := &openReceive{start: now.Add(-10 * time.Second)}
	msgs := []queue.Message{{ID: "a", ReceiveCount: 1, SentAt: now.Add(-time.Hour)}}
	if w.poller.waitedOnEmptyQueue(o, msgs, now) {
		t.Error("a message that was there all the time has waited")
	}
	if w.messages.countUnposted(&held{msg: msgs[0]}, false); !w.poller.waitedOnEmptyQueue(o, msgs, now) {
		t.Error("one that was given back has not")
	}
}
