package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tendril/queue"
	"tendril/queuetest"
)

type poolWorld struct {
	seed        uint64
	concurrency int
	sleep       time.Duration
	limit       testLimiter
	limited     bool
	queues      []queueWorld
}

type queueWorld struct {
	world
	weight, most, batch int
	window, maxWait     time.Duration
	throttling          float64
}

func drawLanes(t *rapid.T) *poolWorld {
	l := &poolWorld{
		seed:        rapid.Uint64().Draw(t, "seed"),
		concurrency: rapid.IntRange(1, 12).Draw(t, "pool concurrency"),
		sleep:       time.Duration(rapid.SampledFrom([]int{0, 0, 0, 7}).Draw(t, "sleep")) * time.Second,
		limited:     rapid.SampledFrom([]bool{false, false, true}).Draw(t, "limited"),
	}
	if l.limited {
		l.limit.concurrency = rapid.IntRange(0, 4).Draw(t, "limiter concurrency")
		l.limit.rate = float64(rapid.SampledFrom([]int{0, 5, 50}).Draw(t, "limiter rate"))
		l.limit.burst = max(l.limit.rate, 1)
	}
	strict := rapid.Bool().Draw(t, "strict")
	for i := range rapid.IntRange(1, 3).Draw(t, "queues") {
		w := queueWorld{world: drawWorld(t)}
		w.messages = min(w.messages, 40)
		w.most = rapid.SampledFrom([]int{0, 0, 2}).Draw(t, fmt.Sprint("most ", i))
		w.batch = rapid.SampledFrom([]int{1, 1, 4, 10}).Draw(t, fmt.Sprint("batch ", i))
		w.window = time.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, fmt.Sprint("window ", i))) * time.Second
		w.maxWait = time.Duration(rapid.SampledFrom([]int{0, 20}).Draw(t, fmt.Sprint("max wait ", i))) * time.Second
		w.throttling = rapid.SampledFrom([]float64{0, 0, 0.1}).Draw(t, fmt.Sprint("throttling ", i))
		if !strict {
			w.weight = rapid.IntRange(0, 5).Draw(t, fmt.Sprint("weight ", i))
		}
		l.queues = append(l.queues, w)
	}
	return l
}

type batchQueueApp struct{ *queueApp }

func (l *batchQueueApp) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	l.c.mu.Lock()
	l.c.working++
	l.c.most = max(l.c.most, l.c.working)
	l.c.mu.Unlock()
	var results []queue.Result
	for _, m := range msgs {
		results = append(results, l.testApp.Deliver(ctx, m))
	}
	l.c.mu.Lock()
	l.c.working--
	l.c.mu.Unlock()
	return results
}

func TestInvariantsOfAPool(t *testing.T) {
	t.Parallel()
	var seen Counts
	// A single run may miss rare states.
	const rounds = 50
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			l := drawLanes(t)
			rapid.SyncTest(t, func(t *rapid.T) { l.run(t, &seen) })
		})
		if t.Failed() || unseen(&seen) == nil {
			break
		}
	}
	t.Logf("seen over all: %+v", seen)
	if missing := unseen(&seen); missing != nil {
		t.Errorf("no pool saw this: %s; the property is not tested", missing)
	}
}

func unseen(seen *Counts) (missing []string) {
	for what, n := range map[string]int64{"given back": seen.Returned, "throttled": seen.Throttled,
		"unreached": seen.Unreached,
		"lifted":    seen.Promoted, "limited": seen.Limited, "extended": seen.Extended, "postponed": seen.Postponed} {
		if n == 0 {
			missing = append(missing, what)
		}
	}
	return missing
}

func (l *poolWorld) run(t tester, seen *Counts) {
	d := &dice{r: rand.New(rand.NewPCG(l.seed, 8))}
	var healed atomic.Bool
	opts := PoolOptions{Concurrency: l.concurrency, Sleep: l.sleep}
	c := &crowd{counter: &counter{}, pool: NewPool(&opts)}
	early := make([]atomic.Int64, len(l.queues))
	for i := range l.queues {
		c.all = append(c.all, l.queueApp(t, i, c, d, &healed, &early[i]))
	}
	ctx, stop := context.WithCancel(context.Background())
	for _, r := range c.all {
		go func() { r.ended <- r.w.Run(ctx, context.Background()) }()
	}
	l.disturb(d, c)
	healed.Store(true)
	patience := 10 * time.Minute
	for i, r := range c.all {
		w := &l.queues[i]
		r.app.setDown(false)
		r.w.Resume()
		patience += time.Duration(w.messages)*(w.work+4*w.latency) + 5*w.visibility
	}
	time.Sleep(patience)
	synctest.Wait()
	stop()
	for _, r := range c.all {
		if err := <-r.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	l.check(t, c, early)
	for _, r := range c.all {
		n := r.w.Status().Counts
		seen.Returned += n.Returned
		seen.Throttled += n.Throttled
		seen.Unreached += n.Unreached
		seen.Promoted += n.Promoted
		seen.Limited += n.Limited
		seen.Extended += n.Extended
		seen.Postponed += n.Postponed
	}
}

func (l *poolWorld) queueApp(t tester, i int, c *crowd, d *dice, healed *atomic.Bool, early *atomic.Int64) *harness {
	w := &l.queues[i]
	r := &harness{fake: queuetest.NewFake(&queuetest.FakeOptions{FIFO: w.fifo, Latency: w.latency}), app: &testApp{},
		ended: make(chan error, 1)}
	r.app.fake = r.fake
	r.app.handle = func(ctx context.Context, m *queue.Message) queue.Result {
		if !healed.Load() && d.chance(w.postponing) {
			return w.postponed(d)
		}
		if !healed.Load() && d.chance(w.throttling) {
			return queue.Result{Outcome: queue.Throttled, Status: 429, Reason: "HTTP 429"}
		}
		sleep(ctx, w.work)
		if !healed.Load() && d.chance(w.failing) {
			return queue.Result{Outcome: queue.Failed, Status: 500, Reason: "HTTP 500"}
		}
		return queue.Result{Outcome: queue.Done, Status: 200}
	}
	for n := range w.messages {
		if _, err := r.fake.Send(t.Context(), []queue.Outgoing{{Body: "b", GroupID: fmt.Sprint(n % w.groups)}}); err != nil {
			t.Fatal(err)
		}
	}
	r.fake.SetFault(func(call queuetest.FakeCall) queuetest.FakeFault {
		early.Add(int64(len(w.undue(r.app, call))))
		return w.fault(d, call.Action, healed.Load())
	})
	o := Options{Name: fmt.Sprint(i), Pool: c.pool, Concurrency: w.most, Weight: w.weight, MaxWait: w.maxWait,
		FIFO:              w.fifo,
		VisibilityTimeout: w.visibility, ErrorVisibilityTimeout: w.evt, Batch: Batch{Size: w.batch, Window: w.window}}
	if l.limited {
		o.Limiter = &l.limit
	}
	r.w = New(r.fake, &batchQueueApp{&queueApp{r.app, o.Name, c.counter}}, &o)
	return r
}

func (l *poolWorld) disturb(d *dice, c *crowd) {
	for range 40 {
		for i, r := range c.all {
			w := &l.queues[i]
			r.app.setDown(d.chance(w.outage))
			if w.flap && d.chance(0.1) {
				r.w.Pause("flapping")
			} else {
				r.w.Resume()
			}
		}
		time.Sleep(3 * time.Second)
	}
}

func (l *poolWorld) check(t tester, c *crowd, early []atomic.Int64) {
	if c.most > l.concurrency {
		t.Errorf("%d deliveries at once in a pool of %d", c.most, l.concurrency)
	}
	if p := c.pool; p.inWork != 0 || p.granted != 0 || len(p.lanes) != 0 {
		t.Errorf("after the end %d are in work, %d slots reserved, %d members left", p.inWork, p.granted, len(p.lanes))
	}
	if l.limited && l.limit.done != len(l.limit.begun) {
		t.Errorf("the limiter allowed %d messages, and %d were released", len(l.limit.begun), l.limit.done)
	}
	if l.limited && l.limit.concurrency > 0 && l.limit.most > l.limit.concurrency {
		t.Errorf("%d messages at once, the limiter allows %d", l.limit.most, l.limit.concurrency)
	}
	for i, r := range c.all {
		w := &l.queues[i]
		if got := r.fake.Count(queuetest.FakeDeleted); got != w.messages {
			t.Errorf("queue %d: %d of %d messages are deleted: %+v", i, got, w.messages, r.w.Status())
		}
		if n := early[i].Load(); n > 0 {
			t.Errorf("queue %d: %d deletes without a success", i, n)
		}
		if r.app.twice > 0 {
			t.Errorf("queue %d: %d deliveries of a message that was in work", i, r.app.twice)
		}
		if most := r.app.most; w.most > 0 && most > w.most {
			t.Errorf("queue %d: %d deliveries at once, %d allowed", i, most, w.most)
		}
		receipts := map[string]bool{}
		for _, p := range r.app.seen() {
			if receipts[p.receipt] {
				t.Errorf("queue %d: receipt %s was posted twice", i, p.receipt)
			}
			receipts[p.receipt] = true
		}
		m := r.w.messages
		if left := len(m.held) + r.w.deletes.unconfirmed + len(m.groups) + m.turning; left != 0 {
			t.Errorf("queue %d: %d held, %d unconfirmed, %d groups, %d turning after the end", i,
				len(m.held), r.w.deletes.unconfirmed, len(m.groups), m.turning)
		}
	}
}
