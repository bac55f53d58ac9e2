package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type ask struct {
	id    string
	at    time.Time
	batch int
}

type porter struct {
	*testApp
	mu    sync.Mutex
	until map[string]time.Time
	again time.Duration
	asks  []ask
	sizes []int
}

func (p *porter) postpones(m *queue.Message, batch int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !time.Now().Before(p.until[m.ID]) {
		return false
	}
	p.asks = append(p.asks, ask{m.ID, time.Now(), batch})
	return true
}

func (p *porter) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return p.DeliverBatch(ctx, []*queue.Message{m})[0]
}

func (p *porter) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	results := make([]queue.Result, len(msgs))
	tried := false
	for i, m := range msgs {
		if p.postpones(m, len(msgs)) {
			results[i] = queue.Result{Outcome: queue.Postponed, Reason: "not yet", RetryAfter: p.again}
		} else {
			results[i] = p.testApp.Deliver(ctx, m)
			tried = true
		}
	}
	if tried {
		p.mu.Lock()
		p.sizes = append(p.sizes, len(msgs))
		p.mu.Unlock()
	}
	return results
}

func (p *porter) put(d time.Duration, ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.until[id] = time.Now().Add(d)
	}
}

func (p *porter) asked(id string) (at []time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.asks {
		if a.id == id {
			at = append(at, a.at)
		}
	}
	return at
}

func porterHarness(t *testing.T, fake *queuetest.FakeOptions, opts *Options, again time.Duration) (*harness, *porter) {
	r := &harness{t: t, fake: queuetest.NewFake(fake), app: &testApp{}, ended: make(chan error, 1)}
	r.app.fake = r.fake
	p := &porter{testApp: r.app, until: map[string]time.Time{}, again: again}
	r.w = New(r.fake, p, opts)
	return r, p
}

func (r *harness) receives(n int, ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		if m, _ := r.fake.Message(id); m.Receives != n {
			r.t.Errorf("%s was received %d times, want %d", id, m.Receives, n)
		}
	}
}

func TestPostponedMessageIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var settled []Settled
		var events []Postponed
		opts := &Options{Concurrency: 1, VisibilityTimeout: 6 * time.Second, Events: &Events{
			Settled:   func(s Settled) { settled = append(settled, s) },
			Postponed: func(p Postponed) { events = append(events, p) },
		}}
		r, p := porterHarness(t, nil, opts, 200*ms)
		r.app.handle = done(50 * ms)
		ids := r.send(11, "")
		p.put(time.Minute, ids[0])
		r.run()
		after(10 * time.Second)
		s := r.w.Status()
		if s.Postponed != 1 || s.Counts.Postponed < 40 || s.Counts.Done != 10 || r.w.slots.starts.sum(time.Now()).count != 11 {
			t.Errorf("after 10 s: %+v", s)
		}
		after(2 * time.Minute)
		r.receives(1, ids...)
		r.place(queuetest.FakeDeleted, 11)
		at := p.asked(ids[0])
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < 200*ms || i > 10 && gap != 200*ms {
				t.Fatalf("asked again after %v, want 200 ms", gap)
			}
		}
		if len(settled) != 11 || len(events) != len(at) || int64(len(events)) != r.w.Status().Counts.Postponed {
			t.Errorf("%d settled and %d postponed events, %d asks", len(settled), len(events), len(at))
		}
		if last := settled[10]; last.ID != ids[0] || last.Attempt != 1 || last.Held > ms {
			t.Errorf("in the end %+v", last)
		}
		if want := (Postponed{Kept: true}); events[0] != want {
			t.Errorf("the event is %+v, want %+v", events[0], want)
		}
		if c := r.w.Status().Counts; c.Done != 11 || c.Returned != 0 || c.Failed != 0 {
			t.Errorf("counts do not add up: %+v", c)
		}
		r.stop()
	})
}

func TestPostponedIsTooShortOrTooLong(t *testing.T) {
	t.Parallel()
	for asked, want := range map[time.Duration]time.Duration{
		0: 100 * ms, -1: 10 * ms, ms: 10 * ms, 30 * ms: 30 * ms, time.Hour: time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			r, p := porterHarness(t, nil, &Options{VisibilityTimeout: 20 * time.Second}, asked)
			ids := r.send(1, "")
			p.put(3*want-1, ids[0])
			r.run()
			after(5*want + time.Second)
			at := p.asked(ids[0])
			if len(at) != 3 || at[1].Sub(at[0]) != want || at[2].Sub(at[1]) != want {
				t.Errorf("retry after %v: requests at %v, want one every %v", asked, at, want)
			}
			r.place(queuetest.FakeDeleted, 1)
			r.receives(1, ids...)
			r.stop()
		})
	}
}

func TestPostponedForTwelveHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := porterHarness(t, nil, &Options{VisibilityTimeout: time.Hour}, time.Minute)
		ids := r.send(1, "")
		p.put(13*time.Hour, ids[0])
		r.run()
		after(11*time.Hour + 20*time.Minute)
		r.receives(1, ids...)
		after(time.Hour)
		r.receives(2, ids...)
		if c := r.w.Status().Counts; c.Returned != 1 || c.VisibilityExpired != 0 {
			t.Errorf("given back %d times, lapsed %d: %+v", c.Returned, c.VisibilityExpired, c)
		}
		after(time.Hour)
		if posts := r.app.seen(); len(posts) != 1 || posts[0].receives != 2 || posts[0].left < 30*time.Minute {
			t.Errorf("posted %+v, want once, with more than half of the visibility left", posts)
		}
		r.stop()
	})
}

func TestPostponedIsReturnedWhenTheGateCloses(t *testing.T) {
	t.Parallel()
	for name, shut := range map[string]func(r *harness){
		"paused":    func(r *harness) { r.w.Pause("for a test") },
		"not ready": func(r *harness) { r.w.Gate(false, "starting") },
		"draining":  func(r *harness) { r.drain() },
	} {
		for _, busy := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r, p := porterHarness(t, nil, nil, time.Second)
				ids := r.send(3, "")
				p.put(time.Hour, ids...)
				if busy {
					p.put(0, ids[0])
					r.app.handle = func(ctx context.Context, m *queue.Message) queue.Result {
						sleep(ctx, 10*time.Second)
						return queue.Result{Outcome: queue.Postponed, RetryAfter: time.Second}
					}
				}
				r.run()
				after(5500 * ms)
				r.place(queuetest.FakeInFlight, 3)
				shut(r)
				after(20 * time.Second)
				r.place(queuetest.FakeVisible, 3)
				if s := r.w.Status(); s.Postponed != 0 || s.Counts.Returned != 3 || len(r.w.messages.held) != 0 {
					t.Errorf("%s: %d postponed, %d given back, %d held", name, s.Postponed, s.Counts.Returned, len(r.w.messages.held))
				}
				r.stop()
			})
		}
	}
}

func TestPostponedAtTheAbort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := porterHarness(t, nil, nil, 0)
		r.app.handle = func(ctx context.Context, _ *queue.Message) queue.Result {
			<-ctx.Done()
			return queue.Result{Outcome: queue.Postponed}
		}
		r.send(3, "")
		r.run()
		after(time.Second)
		r.abort()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		r.place(queuetest.FakeVisible, 3)
		r.drain()
	})
}

func TestSurplusOfPostponedMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := porterHarness(t, &queuetest.FakeOptions{Latency: ms}, &Options{Concurrency: 20}, 5*time.Second)
		first := r.send(maxPostponed, "")
		p.put(5*time.Minute, first...)
		r.run()
		after(20 * time.Second)
		if s := r.w.Status(); s.Postponed != maxPostponed || s.Counts.Returned != 0 {
			t.Errorf("%d postponed, %d given back", s.Postponed, s.Counts.Returned)
		}
		var more []string
		for n := range 30 {
			more = append(more, fmt.Sprintf("m-%06d", maxPostponed+n+1))
		}
		p.put(90*time.Second, more...)
		r.send(30, "")
		good := r.send(500, "")
		after(50 * time.Second)
		r.receives(1, first...)
		r.receives(1, more...)
		r.receives(1, good...)
		if s := r.w.Status(); s.Postponed != maxPostponed || s.Counts.Returned != 30 || s.Counts.Done != 500 {
			t.Errorf("%d postponed, %d given back, %d done", s.Postponed, s.Counts.Returned, s.Counts.Done)
		}
		after(10 * time.Minute)
		r.receives(1, first...)
		r.place(queuetest.FakeDeleted, maxPostponed+530)
		r.stop()
	})
}

func TestSurplusOfMessagesPostponedTogetherIsTheLatest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(nil, instant{}, nil)
		w.core.workCtx = t.Context()
		for i := range maxPostponed + 30 {
			postponeNew(w, i, time.Second)
		}
		kept := &w.messages.postponed
		if kept.len() != maxPostponed {
			t.Fatalf("%d messages are kept, want %d", kept.len(), maxPostponed)
		}
		for i := range maxPostponed {
			if got := kept.pop().msg.ID; got != fmt.Sprint(i) {
				t.Fatalf("message %d of the kept ones is %s", i, got)
			}
		}
	})
}

func TestSurplusOfPostponedBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := porterHarness(t, nil, &Options{PrefetchBytes: 10}, time.Second)
		ids := r.send(20, "")
		p.put(30*time.Second, ids...)
		r.run()
		after(20 * time.Second)
		if s := r.w.Status(); s.Postponed < 11 || s.Postponed > 12 {
			t.Errorf("%d messages of 6 to 7 bytes are kept, want 11 or 12 in 80 bytes", s.Postponed)
		}
		after(3 * time.Minute)
		r.place(queuetest.FakeDeleted, 20)
		r.stop()
	})
}

func TestPostponedBytesMayReachTheirBound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		bodies         []int
		kept, returned int
	}{
		{"a single message may be larger than the bound", []int{200}, 1, 0},
		{"exactly the bound is allowed", []int{40, 40}, 2, 0},
		{"one byte more is not", []int{40, 41}, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, p := porterHarness(t, nil, &Options{PrefetchBytes: 10}, 30*time.Second)
			for _, n := range tt.bodies {
				sent, err := r.fake.Send(t.Context(), []queue.Outgoing{{Body: strings.Repeat("x", n)}})
				if err != nil {
					t.Fatal(err)
				}
				p.put(time.Minute, sent[0].ID)
			}
			r.run()
			after(20 * time.Second)
			if s := r.w.Status(); s.Postponed != tt.kept || int(s.Counts.Returned) != tt.returned {
				t.Errorf("%s: %d kept and %d returned, want %d and %d", tt.name, s.Postponed, s.Counts.Returned,
					tt.kept, tt.returned)
			}
			r.stop()
		})
	}
}

func TestPostponedFindsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := porterHarness(t, nil, &Options{Concurrency: 2, VisibilityTimeout: 8 * time.Second}, time.Second)
		r.app.handle = done(time.Minute)
		ids := r.send(2, "")
		p.put(ms, ids[0])
		r.run()
		after(500 * ms)
		others := r.send(1, "")
		after(5 * time.Minute)
		r.receives(1, ids[0], ids[1], others[0])
		r.place(queuetest.FakeDeleted, 3)
		if c := r.w.Status().Counts; c.Returned != 0 || c.VisibilityExpired != 0 {
			t.Errorf("%d given back, %d lapsed", c.Returned, c.VisibilityExpired)
		}
		for _, post := range r.app.seen() {
			if post.left <= 4*time.Second {
				t.Errorf("%s began with %v of 8 s left", post.id, post.left)
			}
		}
		r.stop()
	})
}

func TestPostponedLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := porterHarness(t, nil, &Options{VisibilityTimeout: 4 * time.Second}, 500*ms)
		r.fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeChangeVisibility {
				return queuetest.FakeFault{Err: queue.ErrThrottled}
			}
			return queuetest.FakeFault{}
		})
		ids := r.send(1, "")
		p.put(4200*ms, ids[0])
		r.run()
		after(time.Minute)
		if posts := r.app.seen(); len(posts) != 1 || posts[0].left < 3*time.Second {
			t.Errorf("posted %+v, want once, early in the second receive", posts)
		}
		r.receives(2, ids...)
		r.place(queuetest.FakeDeleted, 1)
		r.stop()
	})
}

func TestPostponedBlocksItsGroupAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := porterHarness(t, &queuetest.FakeOptions{FIFO: true},
			&Options{FIFO: true, VisibilityTimeout: 10 * time.Second},
			500*ms)
		r.app.handle = done(10 * ms)
		a, b := r.send(5, "a"), r.send(5, "b")
		p.put(time.Minute, a[1])
		r.run()
		after(30 * time.Second)
		r.place(queuetest.FakeDeleted, 6)
		if s := r.w.Status(); s.Waiting != 3 || s.Postponed != 1 {
			t.Errorf("%d wait and %d are postponed, want 3 and 1", s.Waiting, s.Postponed)
		}
		after(time.Minute)
		r.place(queuetest.FakeDeleted, 10)
		r.receives(1, a...)
		r.receives(1, b...)
		r.orderOf(t.Errorf)
		r.stop()
	})
}

func TestPostponedOfABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := porterHarness(t, nil, &Options{Batch: Batch{Size: 10, Window: time.Second}}, 200*ms)
		ids := r.send(10, "")
		p.put(3*time.Second, ids[2], ids[7])
		r.run()
		after(1500 * ms)
		r.place(queuetest.FakeDeleted, 8)
		r.send(10, "")
		after(20 * time.Second)
		r.place(queuetest.FakeDeleted, 20)
		r.receives(1, ids...)
		for i, a := range p.asks {
			if (i < 2) != (a.batch == 10) || i >= 2 && a.batch != 1 {
				t.Errorf("ask %d was in a delivery of %d", i, a.batch)
			}
		}
		slices.Sort(p.sizes)
		if want := []int{1, 1, 10, 10}; !slices.Equal(p.sizes, want) {
			t.Errorf("the sizes of the deliveries that tried something are %v, want %v", p.sizes, want)
		}
		if at := p.asked(ids[2]); at[2].Sub(at[1]) != 200*ms {
			t.Errorf("asked again after %v, want 200 ms and no window", at[2].Sub(at[1]))
		}
		r.stop()
	})
}

// A letter is a result: x is done, o postponed, f failed.
func TestPostponedOfAGroupInABatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what     string
		receives []int
	}{
		{"ox", []int{1, 2}},
		{"xo", []int{1, 1}},
		{"oo", []int{1, 1}},
		{"ooo", []int{1, 1, 1}},
		{"xoo", []int{1, 1, 1}},
		{"fo", []int{2, 2}},
		{"ofo", []int{1, 2, 2}},
		{"oof", []int{1, 1, 2}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				opts := &Options{FIFO: true, Batch: Batch{Size: 10}, VisibilityTimeout: 20 * time.Second,
					ErrorVisibilityTimeout: ptr(5 * time.Second)}
				r, p := porterHarness(t, &queuetest.FakeOptions{FIFO: true, Latency: 4 * ms}, opts, 300*ms)
				ids := r.send(len(tt.what), "g")
				failing := map[string]bool{}
				for i, kind := range tt.what {
					if kind == 'o' {
						p.put(time.Second, ids[i])
					}
					failing[ids[i]] = kind == 'f'
				}
				r.app.handle = func(_ context.Context, m *queue.Message) queue.Result {
					if failing[m.ID] && m.ReceiveCount == 1 {
						return queue.Result{Outcome: queue.Failed}
					}
					return queue.Result{Outcome: queue.Done}
				}
				r.run()
				after(2 * time.Minute)
				r.place(queuetest.FakeDeleted, len(ids))
				for i, id := range ids {
					r.receives(tt.receives[i], id)
				}
				last := map[string]time.Time{}
				for _, post := range r.app.seen() {
					last[post.id] = post.start
				}
				for i := 1; i < len(ids); i++ {
					if last[ids[i]].Before(last[ids[i-1]]) {
						t.Errorf("the last attempt of message %d was before that of the one ahead of it", i)
					}
				}
				if len(r.w.messages.groups)+r.w.messages.turning+len(r.w.messages.held) != 0 {
					t.Errorf("%d groups, %d turning, %d held in the end", len(r.w.messages.groups), r.w.messages.turning,
						len(r.w.messages.held))
				}
				r.stop()
			})
		})
	}
}

func TestFIFOPauseIsKeptBehindADeletedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pause = 10 * time.Second
		r, p := porterHarness(t, &queuetest.FakeOptions{FIFO: true, Latency: 5 * ms},
			&Options{FIFO: true, Batch: Batch{Size: 10}}, pause)
		ids := r.send(3, "g")
		p.put(3*pause, ids[1:]...)
		r.run()
		after(5 * time.Second)
		if s := r.w.Status(); s.Postponed != 1 || s.Waiting != 1 || s.InWork != 0 {
			t.Errorf("%d postponed, %d waiting, %d in work; want 1, 1 and 0", s.Postponed, s.Waiting, s.InWork)
		}
		after(2 * time.Minute)
		r.once(3)
		r.receives(1, ids...)
		r.inOrder()
		for _, id := range ids[1:] {
			at := p.asked(id)
			if len(at) == 0 {
				t.Errorf("%s was not postponed", id)
			}
			for i := 1; i < len(at); i++ {
				if gap := at[i].Sub(at[i-1]); gap < pause {
					t.Errorf("%s was delivered again after %v, want %v", id, gap, pause)
				}
			}
		}
		r.stop()
	})
}

func TestPostponedTakeNoRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, p := porterHarness(t, &queuetest.FakeOptions{Latency: 2 * ms}, &Options{Concurrency: 5}, 500*ms)
		r.app.handle = done(100 * ms)
		p.put(time.Hour, r.send(200, "")...)
		r.send(2000, "")
		r.run()
		after(5 * time.Second)
		before := r.w.Status().Counts.Done
		after(20 * time.Second)
		if got := r.w.Status().Counts.Done - before; got < 980 {
			t.Errorf("%d deliveries in 20 s beside 200 postponed messages, want 5 slots' worth: 1000", got)
		}
		r.stop()
	})
}

func TestPostponedInAPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := &testLimiter{concurrency: 3}
		pool := NewPool(&PoolOptions{Concurrency: 4})
		r, p := porterHarness(t, &queuetest.FakeOptions{Latency: 2 * ms}, &Options{Pool: pool, Limiter: limiter}, 50*ms)
		below, _ := porterHarness(t, &queuetest.FakeOptions{Latency: 2 * ms}, &Options{Pool: pool, Limiter: limiter}, 0)
		below.app.handle = done(20 * ms)
		ids := r.send(5, "")
		p.put(time.Minute, ids...)
		below.send(5000, "")
		r.run()
		synctest.Wait()
		below.run()
		after(20 * time.Second)
		if got := below.w.Status().Counts.Done; got < 2500 {
			t.Errorf("the queue below got %d turns in 20 s beside postponed messages, want 3000", got)
		}
		r.receives(1, ids...)
		after(time.Minute)
		r.place(queuetest.FakeDeleted, 5)
		r.receives(1, ids...)
		r.stop()
		below.stop()
		if limiter.done != len(limiter.begun) {
			t.Errorf("the limiter allowed %d messages, and %d were released", len(limiter.begun), limiter.done)
		}
	})
}

func postponeNew(w *Worker, id int, after time.Duration) {
	now := time.Now()
	h := &held{msg: queue.Message{ID: fmt.Sprint(id), Body: "four"}}
	h.hide(now, time.Hour)
	w.settler.postpone(h, after, now)
}

func TestPostponedMessagesAreInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(nil, instant{}, nil)
		w.core.workCtx = t.Context()
		now := time.Now()
		list := &w.messages.postponed
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(200) {
			postponeNew(w, i, time.Duration(i)*time.Second)
		}
		if list.bytes != 800 || list.lastPostponed().msg.Body != "four" {
			t.Errorf("%d bytes of 200 bodies of 4", list.bytes)
		}
		for n := range 200 {
			w.settler.readyPostponed(now.Add(time.Duration(n) * time.Second))
			if w.messages.ready.len() != n+1 || w.messages.ready.list[n].msg.ID != fmt.Sprint(n) {
				t.Fatalf("after %d s there are %d in line", n, w.messages.ready.len())
			}
		}
		if list.bytes != 0 || !list.nextReady().IsZero() {
			t.Errorf("%d bytes left, next at %v", list.bytes, list.nextReady())
		}
	})
}
