package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tendril/queue"
	"tendril/queuetest"
)

type world struct {
	seed                                             uint64
	fifo                                             bool
	messages, groups, concurrency                    int
	visibility, work, latency                        time.Duration
	evt                                              *time.Duration
	failing, lost, broken, throttled, outage, double float64 // probabilities
	postponing                                       float64
	flap                                             bool
	dead                                             queuetest.FakeAction
}

type tester interface {
	Context() context.Context
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

func knownWorlds() []world {
	base := world{messages: 100, groups: 10, concurrency: 10, visibility: 20 * time.Second, work: 30 * time.Millisecond,
		latency: 4 * time.Millisecond}
	fifo, long, deaf, twice, down, lossy := base, base, base, base, base, base
	fifo.fifo, fifo.failing, fifo.broken, fifo.work = true, 0.3, 0.3, 2*time.Second
	long.dead, long.work = queuetest.FakeChangeVisibility, 30*time.Second
	deaf.dead = queuetest.FakeDelete
	twice.double, twice.work = 0.3, 2*time.Second
	down.outage, down.flap, down.failing, down.evt = 0.3, true, 0.3, ptr(2*time.Second)
	lossy.fifo, lossy.dead, lossy.work = true, queuetest.FakeChangeVisibility, 30*time.Second
	twice.postponing, down.postponing, fifo.postponing = 0.9, 0.3, 0.9
	return []world{base, fifo, long, deaf, twice, down, lossy}
}

func drawWorld(t *rapid.T) world {
	chance := func(name string) float64 {
		return rapid.SampledFrom([]float64{0, 0, 0.05, 0.3}).Draw(t, name)
	}
	w := world{
		seed:        rapid.Uint64().Draw(t, "seed"),
		fifo:        rapid.Bool().Draw(t, "fifo"),
		messages:    rapid.IntRange(1, 150).Draw(t, "messages"),
		groups:      rapid.IntRange(1, 12).Draw(t, "groups"),
		concurrency: rapid.IntRange(1, 20).Draw(t, "concurrency"),
		visibility:  time.Duration(rapid.IntRange(5, 60).Draw(t, "visibility")) * time.Second,
		work:        time.Duration(rapid.SampledFrom([]int{0, 1, 30, 2000, 20000}).Draw(t, "work")) * time.Millisecond,
		latency:     time.Duration(rapid.SampledFrom([]int{0, 4, 50, 400}).Draw(t, "latency")) * time.Millisecond,
		failing:     chance("failing"), postponing: chance("postponing"), lost: chance("lost"), broken: chance("broken"),
		throttled: chance("throttled"),
		dead: rapid.SampledFrom([]queuetest.FakeAction{"", "", "", queuetest.FakeDelete,
			queuetest.FakeChangeVisibility}).Draw(t, "dead"),
		outage: chance("outage"), flap: rapid.Bool().Draw(t, "flap"),
	}
	if rapid.Bool().Draw(t, "evt") {
		w.evt = ptr(time.Duration(rapid.IntRange(0, 20).Draw(t, "evt seconds")) * time.Second)
	}
	if !w.fifo {
		w.double = chance("double")
	}
	return w
}

func (w *world) quiet() bool {
	return w.lost+w.broken+w.throttled+w.outage+w.double == 0 && !w.flap && w.dead == ""
}

func TestInvariants(t *testing.T) {
	t.Parallel()
	sometimes := map[string]int{}
	for _, w := range knownWorlds() {
		synctest.Test(t, func(t *testing.T) { w.run(t, sometimes) })
	}
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		rapid.SyncTest(t, func(t *rapid.T) { w.run(t, sometimes) })
	})
	for _, what := range []string{"duplicate", "lapsed", "given back", "unreached", "extended", "delete lost",
		"postponed"} {
		t.Logf("%s in %d worlds", what, sometimes[what])
		if sometimes[what] == 0 {
			t.Errorf("no world saw this: %s; the property is not tested", what)
		}
	}
}

type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) chance(p float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64() < p
}

func (w *world) run(t tester, sometimes map[string]int) {
	d := &dice{r: rand.New(rand.NewPCG(w.seed, 7))}
	var healed atomic.Bool
	fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: w.fifo, Latency: w.latency})
	app := &testApp{fake: fake}
	app.handle = func(ctx context.Context, m *queue.Message) queue.Result {
		if !healed.Load() && d.chance(w.postponing) {
			return w.postponed(d)
		}
		sleep(ctx, w.work)
		if !healed.Load() && d.chance(w.failing) {
			return queue.Result{Outcome: queue.Failed, Status: 500, Reason: "HTTP 500"}
		}
		return queue.Result{Outcome: queue.Done, Status: 200}
	}
	for i := range w.messages {
		if _, err := fake.Send(t.Context(), []queue.Outgoing{{Body: "b", GroupID: fmt.Sprint(i % w.groups)}}); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var early []string
	fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
		if undue := w.undue(app, c); len(undue) > 0 {
			mu.Lock()
			early = append(early, undue...)
			mu.Unlock()
		}
		return w.fault(d, c.Action, healed.Load())
	})

	o := Options{FIFO: w.fifo, Concurrency: w.concurrency, VisibilityTimeout: w.visibility, ErrorVisibilityTimeout: w.evt}
	wk := New(fake, app, &o)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- wk.Run(ctx, context.Background()) }()

	w.disturb(d, fake, app, wk)
	healed.Store(true)
	app.setDown(false)
	wk.Resume()
	time.Sleep(time.Duration(w.messages)*(w.work+4*w.latency) + 5*w.visibility + 2*time.Minute)
	synctest.Wait()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	w.check(t, fake, app, wk, early)
	w.tally(wk.Status().Counts, sometimes)
}

func (w *world) postponed(d *dice) queue.Result {
	after := []time.Duration{0, ms, 300 * ms, 20 * time.Second}
	d.mu.Lock()
	defer d.mu.Unlock()
	return queue.Result{Outcome: queue.Postponed, RetryAfter: after[d.r.IntN(len(after))]}
}

func (w *world) fault(d *dice, action queuetest.FakeAction, healed bool) queuetest.FakeFault {
	switch {
	case healed:
	case action == w.dead:
		return queuetest.FakeFault{Err: queue.ErrThrottled}
	case d.chance(w.lost):
		return queuetest.FakeFault{Err: queue.ErrUnreachable, Apply: true}
	case d.chance(w.broken):
		return queuetest.FakeFault{Err: queue.ErrUnreachable, Entries: []int{0, 3}}
	case d.chance(w.throttled):
		return queuetest.FakeFault{Err: queue.ErrThrottled}
	}
	return queuetest.FakeFault{}
}

func (w *world) undue(app *testApp, c queuetest.FakeCall) (ids []string) {
	if c.Action != queuetest.FakeDelete {
		return nil
	}
	posts := app.byID()
next:
	for _, receipt := range c.Receipts {
		id, _, _ := strings.Cut(receipt, "#")
		for _, p := range posts[id] {
			if p.outcome == queue.Done {
				continue next
			}
		}
		ids = append(ids, id)
	}
	return ids
}

func (w *world) disturb(d *dice, fake *queuetest.Fake, app *testApp, wk *Worker) {
	for range 100 {
		app.setDown(d.chance(w.outage))
		if w.flap && d.chance(0.1) {
			wk.Pause("flapping")
		} else {
			wk.Resume()
		}
		for i := range w.messages {
			if w.double > 0 && d.chance(w.double/10) {
				fake.Redeliver(fmt.Sprintf("m-%06d", i+1))
			}
		}
		time.Sleep(3 * time.Second)
	}
}

func (w *world) check(t tester, fake *queuetest.Fake, app *testApp, wk *Worker, early []string) {
	counts := wk.Status().Counts
	if got := fake.Count(queuetest.FakeDeleted); got != w.messages {
		t.Errorf("%d of %d messages are deleted, %d visible, %d in flight", got, w.messages,
			fake.Count(queuetest.FakeVisible), fake.Count(queuetest.FakeInFlight))
	}
	if len(early) > 0 {
		t.Errorf("deleted without a success: %v", early)
	}
	if app.twice > 0 {
		t.Errorf("%d deliveries of a message that was in work", app.twice)
	}
	if app.most > w.concurrency {
		t.Errorf("%d deliveries at once, %d allowed", app.most, w.concurrency)
	}
	receipts := map[string]bool{}
	for _, p := range app.seen() {
		if receipts[p.receipt] {
			t.Errorf("receipt %s was posted twice", p.receipt)
		}
		receipts[p.receipt] = true
	}
	w.checkRepeats(t, app, counts)
	if w.fifo {
		(&harness{t: nil, fake: fake, app: app}).orderOf(t.Errorf)
	}
	// Without duplicates and late responses, no change may be stale, because another worker may hold the message.
	if w.double == 0 && w.lost == 0 && fake.StaleChanges() > 0 && counts.VisibilityExpired == 0 {
		t.Errorf("%d changes of visibility under a receipt that was over", fake.StaleChanges())
	}
	m := wk.messages
	unconfirmed := wk.deletes.unconfirmed
	if left := len(m.held) + unconfirmed + len(m.groups) + m.turning + m.postponed.len() + m.postponed.bytes; left != 0 {
		t.Errorf("%d held, %d unconfirmed, %d groups, %d turning, %d postponed after the end", len(m.held), unconfirmed,
			len(m.groups), m.turning, m.postponed.len())
	}
}

func (w *world) checkRepeats(t tester, app *testApp, counts Counts) {
	for id, posts := range app.byID() {
		for i := 1; i < len(posts); i++ {
			before := posts[i-1]
			// With duplicates, a delete with the older receipt handle may have no effect.
			if before.outcome == queue.Done && counts.Late == 0 && w.double == 0 {
				t.Errorf("%s was posted again after its success", id)
			}
			if w.quiet() && w.evt != nil && counts.VisibilityExpired == 0 && posts[i].start.Sub(before.end) < *w.evt {
				t.Errorf("%s came again after %v, promised %v", id, posts[i].start.Sub(before.end), *w.evt)
			}
		}
		if w.quiet() && w.failing == 0 && counts.Late == 0 && len(posts) != 1 {
			t.Errorf("%s was posted %d times in a world without trouble", id, len(posts))
		}
	}
}

func (w *world) tally(c Counts, sometimes map[string]int) {
	for what, n := range map[string]int64{
		"duplicate": c.Duplicates, "lapsed": c.VisibilityExpired, "given back": c.Returned, "unreached": c.Unreached,
		"extended": c.Extended, "delete lost": c.DeletesLost, "postponed": c.Postponed,
	} {
		if n > 0 {
			sometimes[what]++
		}
	}
}
