package worker

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type batchApp struct {
	*testApp
	work  time.Duration
	judge func(msgs []*queue.Message) []queue.Result

	mu      sync.Mutex
	batches []delivered
	groups  map[string]int
	clash   int
}

type delivered struct {
	ids      []string
	begin    time.Time
	receipts []string
}

func (a *batchApp) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	d := delivered{begin: time.Now()}
	a.mu.Lock()
	if a.groups == nil {
		a.groups = map[string]int{}
	}
	mine := map[string]bool{}
	for _, m := range msgs {
		d.ids, d.receipts = append(d.ids, m.ID), append(d.receipts, m.ReceiptHandle)
		if m.GroupID != "" {
			mine[m.GroupID] = true
		}
	}
	for g := range mine {
		if a.groups[g]++; a.groups[g] > 1 {
			a.clash++
		}
	}
	a.batches = append(a.batches, d)
	a.mu.Unlock()
	sleep(ctx, a.work)
	a.mu.Lock()
	for g := range mine {
		a.groups[g]--
	}
	a.mu.Unlock()
	if a.judge != nil {
		return a.judge(msgs)
	}
	return all(len(msgs), queue.Result{Outcome: queue.Done, Status: 200})
}

func all(n int, res queue.Result) []queue.Result {
	l := make([]queue.Result, n)
	for i := range l {
		l[i] = res
	}
	return l
}

func (a *batchApp) seen() []delivered {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]delivered(nil), a.batches...)
}

func (a *batchApp) sizes() (l []int) {
	for _, d := range a.seen() {
		l = append(l, len(d.ids))
	}
	return l
}

func startBatches(t *testing.T, fake *queuetest.Fake, app *batchApp, opts *Options) *harness {
	app.testApp = &testApp{fake: fake}
	r := &harness{t: t, fake: fake, app: app.testApp, ended: make(chan error, 1)}
	r.w = New(fake, app, opts)
	r.run()
	return r
}

func TestBatchesFillTheirDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{Latency: 5 * ms})
		send(t, fake, 500, "")
		app := &batchApp{work: 50 * ms}
		var mu sync.Mutex
		events := map[int]int{}
		r := startBatches(t, fake, app,
			&Options{Concurrency: 4, Batch: Batch{Size: 10}, Events: &Events{Settled: func(s Settled) {
				mu.Lock()
				events[s.Batch]++
				mu.Unlock()
			}}})
		after(3 * time.Second)
		r.place(queuetest.FakeDeleted, 500)
		if n := len(app.seen()); n > 55 {
			t.Errorf("%d deliveries of 500 messages, want about 50: %v", n, app.sizes())
		}
		total := 0
		for size, n := range events {
			if size < 1 || size > 10 {
				t.Errorf("a settled message tells of a batch of %d", size)
			}
			total += n
		}
		if total != 500 {
			t.Errorf("%d messages settled, want 500", total)
		}
		if c := r.w.Status().Counts; c.Done != 500 || c.Returned > 0 {
			t.Errorf("counts: %+v", c)
		}
		r.stop()
	})
}

func TestWindowWaitsForMore(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			app := &batchApp{}
			r := startBatches(t, queuetest.NewFake(&queuetest.FakeOptions{FIFO: fifo}), app,
				&Options{Concurrency: 4, FIFO: fifo, Batch: Batch{Size: 10, Window: 20 * time.Second}})
			begin := time.Now()
			r.send(3, "g")
			after(5 * time.Second)
			r.send(3, "h")
			after(14 * time.Second)
			if len(app.seen()) != 0 {
				t.Fatalf("fifo %v: a batch began before its window was over", fifo)
			}
			after(2 * time.Second)
			if got := app.sizes(); !reflect.DeepEqual(got, []int{6}) {
				t.Fatalf("fifo %v: deliveries of %v messages, want one of 6", fifo, got)
			}
			if got := app.seen()[0].begin.Sub(begin); got != 20*time.Second {
				t.Errorf("fifo %v: the batch began after %v, want 20s", fifo, got)
			}
			full := time.Now()
			r.send(10, "k")
			after(time.Second)
			if got := app.seen()[len(app.seen())-1]; len(got.ids) != 10 || got.begin != full {
				t.Errorf("fifo %v: a whole batch of %d began after %v", fifo, len(got.ids), got.begin.Sub(full))
			}
			after(time.Minute)
			r.place(queuetest.FakeDeleted, 16)
			if c := r.w.Status().Counts; c.Returned+c.VisibilityExpired > 0 {
				t.Errorf("fifo %v: a window gave back or lapsed: %+v", fifo, c)
			}
			r.stop()
		})
	}
}

func TestWindowIsBoundedByTheVisibility(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &batchApp{}
		r := startBatches(t, queuetest.NewFake(nil), app,
			&Options{VisibilityTimeout: 40 * time.Second, Batch: Batch{Size: 10, Window: time.Hour}})
		begin := time.Now()
		r.send(1, "")
		after(time.Minute)
		if len(app.seen()) != 1 || app.seen()[0].begin.Sub(begin) != 15*time.Second {
			t.Errorf("%+v, want one delivery after three eighths of 40 s", app.seen())
		}
		r.stop()
	})
}

func TestBatchBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		for _, n := range []int{40, 40, 40, 200, 10} {
			if _, err := fake.Send(t.Context(), []queue.Outgoing{{Body: strings.Repeat("x", n)}}); err != nil {
				t.Fatal(err)
			}
		}
		app := &batchApp{work: time.Second}
		r := startBatches(t, fake, app, &Options{Concurrency: 1, Batch: Batch{Size: 10, Bytes: 100}})
		after(10 * time.Second)
		if got := app.sizes(); !reflect.DeepEqual(got, []int{2, 1, 1, 1}) {
			t.Errorf("deliveries of %v messages, want 2, 1, 1 (too large for any) and 1", got)
		}
		r.stop()
	})
}

func TestBatchNeedsADelivererOfBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{}, &Options{Batch: Batch{Size: 10, Window: time.Minute}})
		r.send(10, "")
		after(time.Second)
		r.place(queuetest.FakeDeleted, 10)
		r.stop()
	})
}

func TestResultsOfABatchAreThoseOfItsMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		judge func(msgs []*queue.Message) []queue.Result
		done  int
		skips bool
	}{
		{"all done", nil, 10, false},
		{"every third failed", func(msgs []*queue.Message) []queue.Result {
			l := all(len(msgs), queue.Result{Outcome: queue.Done})
			for i := 0; i < len(l); i += 3 {
				l[i].Outcome = queue.Failed
			}
			return l
		}, 6, false},
		{"results missing", func(msgs []*queue.Message) []queue.Result {
			return all(7, queue.Result{Outcome: queue.Done})
		}, 7, false},
		{"no result", func(msgs []*queue.Message) []queue.Result { return nil }, 0, false},
		{"too many results", func(msgs []*queue.Message) []queue.Result {
			return all(30, queue.Result{Outcome: queue.Done})
		}, 10, false},
		{"panic", func(msgs []*queue.Message) []queue.Result { panic("of a test") }, 0, false},
		{"unreached", func(msgs []*queue.Message) []queue.Result {
			return all(len(msgs), queue.Result{Outcome: queue.Unreached})
		}, 0, true},
		{"throttled", func(msgs []*queue.Message) []queue.Result {
			return all(len(msgs), queue.Result{Outcome: queue.Throttled})
		}, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				app := &batchApp{}
				first := true
				app.judge = func(msgs []*queue.Message) []queue.Result {
					if first && tt.judge != nil {
						first = false
						return tt.judge(msgs)
					}
					return all(len(msgs), queue.Result{Outcome: queue.Done})
				}
				var attempts sync.Map
				fake := queuetest.NewFake(nil)
				ids := send(t, fake, 10, "")
				r := startBatches(t, fake, app, &Options{Batch: Batch{Size: 10}, ErrorVisibilityTimeout: ptr(10 * time.Second),
					Events: &Events{Settled: func(s Settled) { attempts.Store(s.ID, s.Attempt) }}})
				after(500 * ms)
				if tt.name != "unreached" {
					r.place(queuetest.FakeDeleted, tt.done)
				}
				after(3 * time.Minute)
				r.place(queuetest.FakeDeleted, 10)
				again := 0
				for _, d := range app.seen()[1:] {
					again += len(d.ids)
				}
				if again != 10-tt.done {
					t.Errorf("%d messages came again, want %d", again, 10-tt.done)
				}
				if n, _ := attempts.Load(ids[0]); tt.skips && n != 1 {
					t.Errorf("a message that was not judged counts %v attempts", n)
				}
				seen := map[string]bool{}
				for _, d := range app.seen() {
					for _, receipt := range d.receipts {
						if seen[receipt] && tt.name != "throttled" {
							t.Errorf("receipt %s was posted twice", receipt)
						}
						seen[receipt] = true
					}
				}
				r.stop()
			})
		})
	}
}

func TestUnsentResultsAreIgnored(t *testing.T) {
	t.Parallel()
	unsent := queue.Result{Unsent: true, Reason: "path refused"}
	for _, tt := range []struct {
		name    string
		results []queue.Result
		served  bool
	}{
		{"unsent", []queue.Result{unsent}, false},
		{"all unsent", []queue.Result{unsent, unsent}, false},
		{"one failed", []queue.Result{unsent, {Status: 500}}, true},
		{"one done", []queue.Result{unsent, {Outcome: queue.Done}}, true},
		{"unreached", []queue.Result{unsent, {Outcome: queue.Unreached}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := New(queuetest.NewFake(nil), &testApp{}, nil)
			w.core.workCtx = t.Context()
			w.core.mu.Lock()
			if served := w.app.recordResult(time.Now(), decisive(tt.results), time.Now().Add(50*ms)); served != tt.served {
				t.Errorf("%s: the app answered: %v, want %v", tt.name, served, tt.served)
			}
			w.core.mu.Unlock()
			w.core.endCalls()
		})
	}
}

func TestBatchIsExtendedWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &batchApp{work: 2 * time.Minute}
		fake := queuetest.NewFake(nil)
		send(t, fake, 10, "")
		r := startBatches(t, fake, app, &Options{VisibilityTimeout: 20 * time.Second, Batch: Batch{Size: 10}})
		after(3 * time.Minute)
		r.place(queuetest.FakeDeleted, 10)
		if c := r.w.Status().Counts; c.VisibilityExpired != 0 || c.Extended < 100 || len(app.seen()) != 1 {
			t.Errorf("%d deliveries, %+v", len(app.seen()), c)
		}
		r.stop()
	})
}

func TestInOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, groups, outcomes, want string
		behind                       []int
	}{
		{"all done", "aab", "ddd", "ddd", []int{-1, -1, -1}},
		{"what comes after a failure is not done", "aaa", "dfd", "dff", []int{-1, -1, 1}},
		{"other groups are not touched", "abab", "fddd", "fdfd", []int{-1, -1, 0, -1}},
		{"behind one that was not reached", "aa", "ud", "uf", []int{-1, 0}},
		{"each keeps its own trouble", "aaa", "ftd", "ftf", []int{-1, 0, 0}},
		{"no group, no order", "---", "fdd", "fdd", []int{-1, -1, -1}},
	} {
		var msgs []*held
		var results []queue.Result
		for i, g := range tt.groups {
			h := &held{}
			if g != '-' {
				h.msg.GroupID = string(g)
			}
			msgs = append(msgs, h)
			outcome := map[byte]queue.Outcome{'d': queue.Done, 'f': queue.Failed, 'u': queue.Unreached,
				't': queue.Throttled}[tt.outcomes[i]]
			results = append(results, queue.Result{Outcome: outcome})
		}
		behind := failAfterUnfinished(msgs, results)
		got := ""
		for _, r := range results {
			got += r.Outcome.String()[:1]
		}
		if got != tt.want || !reflect.DeepEqual(behind, tt.behind) {
			t.Errorf("%s: got %s behind %v, want %s behind %v", tt.name, got, behind, tt.want, tt.behind)
		}
	}
}

func TestFIFOBatchesKeepTheirGroupsInOrder(t *testing.T) {
	t.Parallel()
	for _, evt := range []*time.Duration{nil, ptr(time.Duration(0)), ptr(3 * time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, Latency: 4 * ms})
			for i := range 120 {
				if _, err := fake.Send(t.Context(), []queue.Outgoing{{Body: "b", GroupID: fmt.Sprint(i % 4)}}); err != nil {
					t.Fatal(err)
				}
			}
			app := &batchApp{work: 30 * ms}
			var mu sync.Mutex
			turn := 0
			several := false
			app.judge = func(msgs []*queue.Message) []queue.Result {
				mu.Lock()
				defer mu.Unlock()
				l := all(len(msgs), queue.Result{Outcome: queue.Done})
				if turn++; turn%3 == 0 && turn < 60 {
					l[len(l)/2].Outcome = queue.Failed
				}
				for i := 1; i < len(msgs); i++ {
					several = several || msgs[i].GroupID == msgs[i-1].GroupID
				}
				return l
			}
			last := map[string]string{}
			r := startBatches(t, fake, app, &Options{FIFO: true, Concurrency: 5, VisibilityTimeout: 20 * time.Second,
				ErrorVisibilityTimeout: evt, Batch: Batch{Size: 5}, Events: &Events{Settled: func(s Settled) {
					mu.Lock()
					defer mu.Unlock()
					if s.Outcome != queue.Done {
						return
					}
					if s.ID <= last[s.GroupID] {
						t.Errorf("%s of group %s was done after %s", s.ID, s.GroupID, last[s.GroupID])
					}
					last[s.GroupID] = s.ID
				}}})
			after(30 * time.Minute)
			r.place(queuetest.FakeDeleted, 120)
			if app.clash > 0 || !several {
				t.Errorf("%d batches had a group that was in work; several of one group in a batch: %v", app.clash, several)
			}
			if n := len(r.w.messages.groups) + r.w.messages.turning + len(r.w.messages.held); n > 0 {
				t.Errorf("%d groups, %d turning, %d held after the end", len(r.w.messages.groups), r.w.messages.turning,
					len(r.w.messages.held))
			}
			r.stop()
		})
	}
}

func TestBatchesInAPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(&PoolOptions{Concurrency: 4})
		var harnesses []*harness
		apps := []*batchApp{{work: 40 * ms}, {work: 40 * ms}}
		fakes := []*queuetest.Fake{queuetest.NewFake(nil), queuetest.NewFake(nil)}
		for i, fake := range fakes {
			send(t, fake, 3000, "")
			fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault { return queuetest.FakeFault{Latency: 5 * ms} })
			harnesses = append(harnesses, startBatches(t, fake, apps[i],
				&Options{Pool: p, Weight: 2 - i, Batch: Batch{Size: 10, Window: time.Second}}))
		}
		after(2 * time.Second)
		a, b := float64(len(apps[0].seen())), float64(len(apps[1].seen()))
		if a+b < 180 || a/(a+b) < 0.58 || a/(a+b) > 0.75 {
			t.Errorf("%.0f and %.0f deliveries in 2 s of 4 slots and 40 ms, want 200 at two to one", a, b)
		}
		after(time.Minute)
		for _, r := range harnesses {
			r.place(queuetest.FakeDeleted, 3000)
			r.stop()
		}
	})
}

func TestMessagesBehindAFailureShareItsDelay(t *testing.T) {
	t.Parallel()
	for fails := range 2 {
		synctest.Test(t, func(t *testing.T) { behindAFailureIsAsLate(t, fails) })
	}
}

func behindAFailureIsAsLate(t *testing.T, fails int) {
	app := &batchApp{}
	app.judge = func(msgs []*queue.Message) []queue.Result {
		l := all(len(msgs), queue.Result{Outcome: queue.Done})
		if len(app.sizes()) == 1 {
			l[fails] = queue.Result{Outcome: queue.Failed, RetryAfter: 30 * time.Second}
		}
		return l
	}
	var mu sync.Mutex
	var retries []time.Duration
	fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
	send(t, fake, 4, "g")
	begin := time.Now()
	r := startBatches(t, fake, app,
		&Options{FIFO: true, RespectRetryAfter: true, ErrorVisibilityTimeout: ptr(time.Duration(0)), Batch: Batch{Size: 10},
			Events: &Events{Settled: func(s Settled) {
				mu.Lock()
				defer mu.Unlock()
				if !s.NextRetry.IsZero() {
					retries = append(retries, s.NextRetry.Sub(begin))
				}
			}}})
	after(time.Minute)
	mu.Lock()
	if want := slices.Repeat([]time.Duration{30 * time.Second}, 4-fails); !reflect.DeepEqual(retries, want) {
		t.Errorf("message %d fails: retries after %v, want %v", fails, retries, want)
	}
	mu.Unlock()
	if got, want := app.sizes(), append([]int{4}, slices.Repeat([]int{1}, 4-fails)...); !reflect.DeepEqual(got, want) {
		t.Errorf("message %d fails: deliveries of %v messages, want all and then those that were not done in order, each "+
			"alone: %v", fails, got, want)
	}
	r.place(queuetest.FakeDeleted, 4)
	r.stop()
}

func TestFIFOBatchFailureSparesThoseBehindIt(t *testing.T) {
	t.Parallel()
	for _, opts := range []*Options{{UncountedReturns: true}, {MaxReceives: 3}} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, MaxReceives: 3, UncountsUnread: opts.UncountedReturns})
			app := &batchApp{work: 30 * ms}
			posts := map[string]int{}
			bad := []string{"body 1", "body 7", "body 12"}
			var done []string
			app.judge = func(msgs []*queue.Message) []queue.Result {
				l := all(len(msgs), queue.Result{Outcome: queue.Done})
				for i, m := range msgs {
					if posts[m.Body]++; slices.Contains(bad, m.Body) {
						l[i].Outcome = queue.Failed
					}
				}
				return l
			}
			opts.FIFO, opts.Concurrency, opts.ErrorVisibilityTimeout, opts.Batch = true, 2, ptr(time.Second), Batch{Size: 5}
			opts.Events = &Events{Settled: func(s Settled) {
				if s.Outcome == queue.Done {
					done = append(done, s.ID)
				}
			}}
			r := startBatches(t, fake, app, opts)
			r.send(20, "g")
			after(20 * time.Minute)
			r.place(queuetest.FakeDeleted, 17)
			r.place(queuetest.FakeDead, 3)
			if !slices.IsSorted(done) {
				t.Errorf("done out of order: %v", done)
			}
			for body, n := range posts {
				if n > 3 || n > 2 && !slices.Contains(bad, body) {
					t.Errorf("%s was posted %d times", body, n)
				}
			}
			r.stop()
		})
	}
}

func TestFIFOBatchInWorkKeepsItsOldPolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &batchApp{work: 30 * ms}
		var r *harness
		var done []string
		app.judge = func(msgs []*queue.Message) []queue.Result {
			l := all(len(msgs), queue.Result{Outcome: queue.Done})
			if len(app.sizes()) == 1 {
				r.w.SetMaxReceives(1)
				l[0].Outcome = queue.Failed
			}
			return l
		}
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
		send(t, fake, 6, "g")
		opts := &Options{FIFO: true, ErrorVisibilityTimeout: ptr(time.Second), Batch: Batch{Size: 3},
			Events: &Events{Settled: func(s Settled) {
				if s.Outcome == queue.Done {
					done = append(done, s.ID)
				}
			}}}
		app.testApp = &testApp{fake: fake}
		r = &harness{t: t, fake: fake, app: app.testApp, w: New(fake, app, opts), ended: make(chan error, 1)}
		r.run()
		after(time.Minute)
		r.place(queuetest.FakeDeleted, 6)
		if !slices.IsSorted(done) {
			t.Errorf("done out of order: %v", done)
		}
		r.stop()
	})
}
