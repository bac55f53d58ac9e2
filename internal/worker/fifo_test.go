package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

func (r *harness) inOrder() {
	r.t.Helper()
	r.orderOf(r.t.Errorf)
}

func (r *harness) orderOf(errorf func(string, ...any)) {
	groups := map[string][]post{}
	for _, p := range r.app.seen() {
		m, _ := r.fake.Message(p.id)
		groups[m.GroupID] = append(groups[m.GroupID], p)
	}
	for group, posts := range groups {
		slices.SortFunc(posts, func(a, b post) int { return a.start.Compare(b.start) })
		last := ""
		for i, p := range posts {
			if i > 0 && p.start.Before(posts[i-1].end) {
				errorf("group %s: %s began before %s ended", group, p.id, posts[i-1].id)
			}
			if p.id < last {
				errorf("group %s: %s was posted after %s was done", group, p.id, last)
			}
			if p.outcome == queue.Done {
				last = p.id
			}
		}
	}
}

func TestFIFOGroupGoesOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, KeepLog: true})
		r := start(t, fake, &testApp{handle: done(time.Second)}, &Options{FIFO: true})
		after(time.Second)
		began := time.Now()
		for _, group := range []string{"a", "b", "c"} {
			r.send(10, group)
		}
		after(10 * time.Second)
		r.once(30)
		r.inOrder()
		if r.app.most != 3 {
			t.Errorf("%d deliveries at once, want one for each of 3 groups", r.app.most)
		}
		posts := r.app.seen()
		if took := posts[len(posts)-1].end.Sub(began); took > 10*time.Second {
			t.Errorf("ten in a row took %v: a delete must not linger", took)
		}
		r.stop()
	})
}

func TestFIFOGroupThatWaitsDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
		send(t, fake, 50, "flood")
		send(t, fake, 1, "other")
		r := start(t, fake, &testApp{handle: done(5 * time.Second)}, &Options{FIFO: true, Concurrency: 10})
		after(time.Second)
		if s := r.w.Status(); s.InWork != 2 || s.Waiting != 9 {
			t.Errorf("%d in work and %d waiting, want 2 and 9", s.InWork, s.Waiting)
		}
		after(10 * time.Minute)
		r.once(51)
		r.inOrder()
		r.stop()
	})
}

func TestOnlyAFIFOQueueReportsTheGroupOfTheLongestDelivery(t *testing.T) {
	t.Parallel()
	for fifo, want := range map[bool]string{true: "user-7", false: ""} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: fifo})
			send(t, fake, 1, "user-7")
			r := start(t, fake, &testApp{handle: done(10 * time.Second)}, &Options{FIFO: fifo})
			after(5 * time.Second)
			if s := r.w.Status(); s.LongestID == "" || s.LongestGroup != want {
				t.Errorf("FIFO %t: message %q of group %q, want group %q", fifo, s.LongestID, s.LongestGroup, want)
			}
			r.stop()
		})
	}
}

func TestFIFOFailureReturnsTheRestOfItsGroup(t *testing.T) {
	t.Parallel()
	for _, evt := range []*time.Duration{nil, ptr(time.Duration(0)), ptr(5 * time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
			var mu sync.Mutex
			failures := 3
			app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
				sleep(ctx, 100*time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if m.Body == "body 2" && failures > 0 {
					failures--
					return queue.Result{Outcome: queue.Failed, Status: 500, Reason: "HTTP 500"}
				}
				return queue.Result{Outcome: queue.Done, Status: 200}
			}}
			r := start(t, fake, app, &Options{FIFO: true, VisibilityTimeout: time.Minute, ErrorVisibilityTimeout: evt})
			ids := r.send(6, "g")
			after(310 * time.Millisecond)
			if evt == nil || *evt > 0 {
				for _, id := range ids[3:] {
					if m, _ := fake.Message(id); m.Place != queuetest.FakeVisible {
						t.Errorf("%s is %s after the failure before it, want given back", id, m.Place)
					}
				}
			}
			after(5 * time.Minute)
			r.place(queuetest.FakeDeleted, 6)
			r.inOrder()
			if got := len(app.byID()[ids[2]]); got != 4 {
				t.Errorf("%d attempts of the third, want 4", got)
			}
			if got := len(app.seen()); got != 9 {
				t.Errorf("%d deliveries, want 6 and 3 failures", got)
			}
			r.stop()
		})
	}
}

func TestFIFOWaitsForTheConfirmedDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
		fake.Fail(queuetest.FakeDelete, queuetest.FakeFault{Err: queue.ErrThrottled},
			queuetest.FakeFault{Latency: 3 * time.Second})
		r := start(t, fake, &testApp{}, &Options{FIFO: true})
		sent := time.Now()
		r.send(3, "g")
		after(time.Minute)
		r.once(3)
		r.inOrder()
		if gap := r.app.byID()["m-000002"][0].start.Sub(sent); gap < 3*time.Second {
			t.Errorf("the second was posted %v after the first was sent, before its delete was confirmed", gap)
		}
		r.stop()
	})
}

func TestFIFOWaitingMessagesAreKeptHidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
		r := start(t, fake, &testApp{handle: done(10 * time.Minute)}, &Options{FIFO: true, VisibilityTimeout: time.Minute})
		r.send(5, "g")
		after(time.Hour)
		r.once(5)
		r.inOrder()
		for _, p := range r.app.seen() {
			if p.receives != 1 || p.left < 30*time.Second {
				t.Errorf("%s: receive %d, started with %v left", p.id, p.receives, p.left)
			}
		}
		r.stop()
	})
}

func TestFIFOUnderFailures(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			chance := func(p float64) bool {
				mu.Lock()
				defer mu.Unlock()
				return random.Float64() < p
			}
			most := []int{0, 4}[seed%2]
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, MaxReceives: most, Latency: 5 * time.Millisecond})
			trouble := func(c queuetest.FakeCall) queuetest.FakeFault {
				if c.Action != queuetest.FakeSend && chance(0.1) {
					return queuetest.FakeFault{Err: queue.ErrUnreachable, Apply: chance(0.5)}
				}
				return queuetest.FakeFault{}
			}
			app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
				sleep(ctx, 30*time.Millisecond)
				if chance(0.1) {
					return queue.Result{Outcome: queue.Failed, Reason: "HTTP 500"}
				}
				return queue.Result{Outcome: queue.Done}
			}}
			r := start(t, fake, app,
				&Options{FIFO: true, MaxReceives: most, VisibilityTimeout: 10 * time.Second,
					ErrorVisibilityTimeout: ptr(time.Second)})
			for _, group := range []string{"a", "b", "c", "d"} {
				r.send(15, group)
			}
			fake.SetFault(trouble)
			after(10 * time.Minute)
			fake.SetFault(nil)
			after(10 * time.Minute)
			dead := fake.Count(queuetest.FakeDead)
			if most == 0 && dead > 0 {
				t.Errorf("%d are dead", dead)
			}
			r.place(queuetest.FakeDeleted, 60-dead)
			r.inOrder()
			r.stop()
		})
	}
}

func TestFIFOGroupBetweenTwoMessagesKeepsItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
		send(t, fake, 3, "a")
		others := send(t, fake, 10, "b")
		fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeDelete {
				return queuetest.FakeFault{Latency: 3 * time.Second}
			}
			return queuetest.FakeFault{}
		})
		r := prepare(t, fake, &testApp{handle: done(2 * time.Second)}, &Options{FIFO: true, Concurrency: 3})
		r.run()
		after(3 * time.Second)
		s := r.w.Status()
		if s.Prefetched != 0 || s.InWork+s.Unconfirmed > 3 {
			t.Errorf("status: %+v", s)
		}
		if got := r.w.messages.turning; got != s.Unconfirmed {
			t.Errorf("%d groups are between two messages, %d deletes are open", got, s.Unconfirmed)
		}
		r.w.core.mu.Lock()
		if got, want := r.w.poller.room(time.Now()), 3-r.w.core.inWork-r.w.messages.turning-r.w.poller.asked; got != want {
			t.Errorf("room for %d, want %d", got, want)
		}
		r.w.core.mu.Unlock()
		after(10 * time.Minute)
		r.place(queuetest.FakeDeleted, 3+len(others))
		r.inOrder()
		r.stop()
	})
}

func failing(bodies ...string) func(context.Context, *queue.Message) queue.Result {
	return func(ctx context.Context, m *queue.Message) queue.Result {
		sleep(ctx, 100*time.Millisecond)
		if slices.Contains(bodies, m.Body) {
			return queue.Result{Outcome: queue.Failed, Status: 500, Reason: "HTTP 500"}
		}
		return queue.Result{Outcome: queue.Done, Status: 200}
	}
}

func TestFIFOFailureCostsThoseBehindItNoReceive(t *testing.T) {
	t.Parallel()
	for _, evt := range []*time.Duration{nil, ptr(time.Duration(0)), ptr(time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, MaxReceives: 3, UncountsUnread: true})
			app := &testApp{handle: failing("body 1", "body 4")}
			r := start(t, fake, app,
				&Options{FIFO: true, UncountedReturns: true, VisibilityTimeout: time.Minute, ErrorVisibilityTimeout: evt,
					Events: &Events{Settled: func(s Settled) {
						if s.Attempt != s.ReceiveCount {
							t.Errorf("%s: attempt %d at receive %d", s.ID, s.Attempt, s.ReceiveCount)
						}
					}}})
			ids := r.send(25, "g")
			after(20 * time.Minute)
			r.place(queuetest.FakeDeleted, 23)
			r.place(queuetest.FakeDead, 2)
			r.inOrder()
			for i, id := range ids {
				posts := app.byID()[id]
				if want := map[bool]int{true: 3, false: 1}[i == 1 || i == 4]; len(posts) != want || posts[want-1].receives != want {
					t.Errorf("message %d: posts %+v, want %d", i, posts, want)
				}
			}
			r.stop()
		})
	}
}

// Messages behind a dead-lettered one may have no other receive left.
func TestFIFOGroupGoesOnBehindADeadMessage(t *testing.T) {
	t.Parallel()
	for _, evt := range []*time.Duration{nil, ptr(time.Duration(0)), ptr(time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, MaxReceives: 3})
			app := &testApp{handle: failing("body 1", "body 4")}
			r := start(t, fake, app,
				&Options{FIFO: true, MaxReceives: 3, VisibilityTimeout: time.Minute, ErrorVisibilityTimeout: evt})
			ids := r.send(10, "g")
			after(20 * time.Minute)
			r.place(queuetest.FakeDeleted, 8)
			r.place(queuetest.FakeDead, 2)
			r.inOrder()
			for i, id := range ids {
				posts := app.byID()[id]
				want := map[int]int{1: 3, 4: 1}[i]
				if evt == nil && i == 4 {
					want = 2
				}
				if len(posts) != max(want, 1) {
					t.Errorf("message %d: posts %+v, want %d", i, posts, want)
				}
			}
			r.stop()
		})
	}
}

// After a failure, messages are received one at a time, so those behind lose at most one attempt, or a few with
// several workers.
func TestFIFOMessagesBehindAFailureKeepTheirAttempts(t *testing.T) {
	t.Parallel()
	const most = 5
	for name, lost := range map[string]int{"one worker": 1, "two workers": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, MaxReceives: most, Latency: 3 * ms})
				app := &testApp{handle: failing("body 0", "body 1", "body 2", "body 3", "body 4", "body 5")}
				second := prepare(t, fake, app, &Options{FIFO: true, MaxReceives: most, VisibilityTimeout: time.Minute})
				r := prepare(t, fake, app, &Options{FIFO: true, MaxReceives: most, VisibilityTimeout: time.Minute})
				ids := r.send(6, "g")
				var others []string
				for range 60 {
					sent, err := fake.Send(t.Context(), []queue.Outgoing{{Body: "fine", GroupID: "h"}})
					if err != nil {
						t.Fatal(err)
					}
					others = append(others, sent[0].ID)
				}
				r.run()
				if lost > 1 {
					second.run()
				}
				after(time.Hour)
				r.inOrder()
				for i, id := range ids {
					posts := len(app.byID()[id])
					m, _ := fake.Message(id)
					if m.Place != queuetest.FakeDead || posts < most-lost || i == 0 && posts != most {
						t.Errorf("message %d of the failing group: %s after %d posts, want at least %d", i, m.Place, posts,
							most-lost)
					}
				}
				for _, id := range others {
					if m, _ := fake.Message(id); m.Place != queuetest.FakeDeleted {
						t.Errorf("a message of another group is %s", m.Place)
					}
				}
				if calls := fake.Calls(queuetest.FakeReceive); calls > 800 {
					t.Errorf("%d receives in an hour", calls)
				}
				r.stop()
				if lost > 1 {
					second.stop()
				}
			})
		})
	}
}

func TestFIFOGroupWaitsBehindMessagesThatMayReturn(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]func(*Worker){
		"the policy became unknown": func(w *Worker) { w.SetMaxReceives(0) },
		"the policy was changed":    func(w *Worker) { w.SetMaxReceives(5) },
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
			var r *harness
			failed := false
			app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
				if failed || m.Body != "body 0" {
					return queue.Result{Outcome: queue.Done}
				}
				failed = true
				during(r.w)
				return queue.Result{Outcome: queue.Failed}
			}}
			r = prepare(t, fake, app,
				&Options{FIFO: true, MaxReceives: 1, VisibilityTimeout: time.Minute, ErrorVisibilityTimeout: ptr(3 * time.Second)})
			r.run()
			r.send(4, "g")
			after(10 * time.Minute)
			r.place(queuetest.FakeDeleted, 4)
			r.orderOf(func(format string, args ...any) { t.Errorf(name+": "+format, args...) })
			if posts := r.app.byID()["m-000001"]; len(posts) != 2 {
				t.Errorf("%s: posts of the first: %+v, want 2", name, posts)
			}
			r.stop()
		})
	}
}
