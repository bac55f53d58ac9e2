package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

func TestNothingIsReceivedBeforeTheAppAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{down: true}
		r := start(t, queuetest.NewFake(nil), app, nil)
		r.send(10, "")
		after(10 * time.Minute)
		if got := r.fake.Calls(queuetest.FakeReceive); got != 0 {
			t.Errorf("%d receives before the app answered", got)
		}
		if n := len(app.probes); n < 110 || n > 260 {
			t.Errorf("%d probes in ten minutes, want one each 2.5 to 5 s", n)
		}
		if first := app.probes[1].Sub(app.probes[0]); first > 250*time.Millisecond {
			t.Errorf("second probe after %v, want at most 250 ms", first)
		}
		s := r.w.Status()
		if s.Receiving || len(s.Reasons) != 1 || s.Reasons[0].Block != AppDown {
			t.Errorf("status: %+v", s)
		}
		app.setDown(false)
		after(6 * time.Second)
		r.once(10)
		probes := len(app.probes)
		after(time.Hour)
		if len(app.probes) != probes {
			t.Error("an app that answered is not probed")
		}
		r.stop()
	})
}

func TestGateMayOpenBeforeRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := prepare(t, queuetest.NewFake(nil), &testApp{}, nil)
		r.w.Gate(false, "the app is starting")
		r.w.Gate(true, "")
		r.run()
		r.send(10, "")
		after(time.Second)
		r.once(10)
		r.stop()
	})
}

func TestGateOfTheEnvironmentReplacesTheFirstProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{down: true}
		r := prepare(t, queuetest.NewFake(nil), app, nil)
		r.w.Gate(false, "the app is starting")
		r.run()
		r.send(10, "")
		after(time.Minute)
		if len(app.probes) != 0 || r.fake.Calls(queuetest.FakeReceive) != 0 {
			t.Errorf("%d probes and %d receives behind a closed gate", len(app.probes), r.fake.Calls(queuetest.FakeReceive))
		}
		if !hasBlock(r.w.Status().Reasons, NotReady) {
			t.Errorf("reasons: %+v", r.w.Status().Reasons)
		}
		app.setDown(false)
		r.w.Gate(true, "")
		after(time.Second)
		r.once(10)
		if len(app.probes) != 0 {
			t.Errorf("%d probes although the environment vouched", len(app.probes))
		}
		if got := r.w.Status().Limit; got != defaultConcurrency {
			t.Errorf("the first start begins with %d at once, want all", got)
		}
		r.w.Gate(false, "the app restarts")
		r.w.Gate(true, "")
		if got := r.w.Status().Limit; got != 1 {
			t.Errorf("a new start begins with %d at once, want one", got)
		}
		r.stop()
	})
}

func hasBlock(reasons []Reason, block Block) bool {
	for _, r := range reasons {
		if r.Block == block {
			return true
		}
	}
	return false
}

func TestOutageBurnsOnlyTheReceivesInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, c = 2000, 10
		fake := queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 3})
		send(t, fake, n, "")
		fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault {
			return queuetest.FakeFault{Latency: 5 * time.Millisecond}
		})
		app := &testApp{handle: done(20 * time.Millisecond)}
		var mu sync.Mutex
		var gates []GateChanged
		r := start(t, fake, app, &Options{Concurrency: c, ErrorVisibilityTimeout: ptr(time.Second), Events: &Events{
			GateChanged: func(g GateChanged) {
				mu.Lock()
				defer mu.Unlock()
				gates = append(gates, g)
			},
		}})
		after(time.Second)
		app.setDown(true)
		atOutage := r.w.Status().Counts
		after(10 * time.Minute)
		s := r.w.Status()
		// Only messages in flight, prefetched or being received at the start use up a receive.
		if received := s.Counts.Received - atOutage.Received; received > 3*c+10 {
			t.Errorf("%d messages received during the outage, want at most %d", received, 3*c+10)
		}
		if s.Counts.Unreached > c || s.Receiving || !hasBlock(s.Reasons, AppDown) || s.InWork+s.Prefetched > 0 {
			t.Errorf("during the outage: %+v", s)
		}
		if got := fake.Count(queuetest.FakeInFlight); got != 0 {
			t.Errorf("%d messages are kept from others during the outage", got)
		}
		healed := time.Now()
		app.setDown(false)
		after(30 * time.Second)
		if !r.w.Status().Receiving {
			t.Error("still closed 30 s after the app came back")
		}
		r.place(queuetest.FakeDeleted, n)
		r.place(queuetest.FakeDead, 0)
		slowStart(t, app.seen(), healed, c)
		mu.Lock()
		if len(gates) != 3 || gates[1].Open || !gates[2].Open {
			t.Errorf("gate events: %+v", gates)
		}
		mu.Unlock()
		r.stop()
	})
}

// slowStart expects one more concurrent delivery after each response.
func slowStart(t *testing.T, posts []post, healed time.Time, c int) {
	t.Helper()
	answered := 0
	for _, p := range posts {
		if p.start.Before(healed) {
			continue
		}
		running := 0
		for _, q := range posts {
			if !q.start.Before(healed) && !q.start.After(p.start) && q.end.After(p.start) {
				running++
			}
		}
		if allowed := min(answered+1, c); running > allowed && answered < c {
			t.Errorf("%d at once after %d answers", running, answered)
		}
		answered++
	}
	if answered == 0 {
		t.Error("nothing was delivered after the outage")
	}
}

func TestLateRefusalOfTheOldAppDoesNotCloseTheGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := true
		var mu sync.Mutex
		app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
			mu.Lock()
			wait := slow
			slow = false
			mu.Unlock()
			if wait {
				sleep(ctx, 5*time.Second)
			}
			return queue.Result{Outcome: queue.Unreached, Reason: "connect timeout"}
		}}
		r := start(t, queuetest.NewFake(nil), app, &Options{Concurrency: 2})
		r.send(2, "")
		after(time.Second)
		app.mu.Lock()
		app.handle = nil
		app.mu.Unlock()
		if !r.w.Status().Receiving {
			t.Fatal("the app is up again")
		}
		after(5 * time.Second)
		if !r.w.Status().Receiving || len(app.probes) != 2 {
			t.Errorf("receiving %v after %d probes", r.w.Status().Receiving, len(app.probes))
		}
		r.stop()
	})
}

func TestAppThatPassesOnlyProbesIsTriedLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: func(context.Context, *queue.Message) queue.Result {
			return queue.Result{Outcome: queue.Unreached, Reason: "too many open files"}
		}}
		r := start(t, queuetest.NewFake(nil), app, &Options{Concurrency: 10})
		r.send(1000, "")
		after(10 * time.Minute)
		if got := r.w.Status().Counts.Received; got < 100 || got > 300 {
			t.Errorf("%d receives in ten minutes, want one each 2.5 to 5 s", got)
		}
		app.mu.Lock()
		app.handle = nil
		app.mu.Unlock()
		after(20 * time.Second)
		if got := r.fake.Count(queuetest.FakeDeleted); got < 700 || r.w.app.outages != 0 {
			t.Errorf("%d were done after the trouble, %d closings in a row", got, r.w.app.outages)
		}
		r.stop()
	})
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: done(30 * time.Second)}
		r := start(t, queuetest.NewFake(&queuetest.FakeOptions{KeepLog: true}), app, &Options{Concurrency: 2})
		r.send(2, "")
		after(time.Second)
		r.w.Pause("maintenance")
		r.w.Pause("maintenance until noon")
		after(time.Second)
		r.send(20, "")
		after(time.Minute)
		r.once(2)
		s := r.w.Status()
		if s.Receiving || len(s.Reasons) != 1 || s.Reasons[0].Block != Paused ||
			s.Reasons[0].Text != "maintenance until noon" {
			t.Errorf("status: %+v", s)
		}
		if got := r.fake.Count(queuetest.FakeVisible); got != 20 || r.fake.OpenReceives() != 0 {
			t.Errorf("%d of 20 are visible, %d receives open", got, r.fake.OpenReceives())
		}
		r.w.Resume()
		r.w.Resume()
		after(10 * time.Minute)
		r.once(22)
		r.stop()
	})
}

func TestMessagesReceivedAtAClosedGateAreReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{KeepLog: true, Latency: 100 * time.Millisecond})
		send(t, fake, 1000, "")
		app := &testApp{handle: done(5 * time.Millisecond)}
		r := start(t, fake, app, &Options{Concurrency: 10})
		after(475 * time.Millisecond)
		open := fake.OpenReceives()
		if open < 2 {
			t.Fatalf("%d receives open, so the test proves nothing", open)
		}
		r.w.Pause("now")
		paused := time.Now()
		after(time.Second)
		s := r.w.Status()
		for _, p := range app.seen() {
			if p.start.After(paused) {
				t.Errorf("message %s was posted %v after the pause", p.id, p.start.Sub(paused))
			}
		}
		if s.Counts.Returned < int64(open) || fake.Count(queuetest.FakeInFlight) != 0 {
			t.Errorf("%d given back, %d still in flight", s.Counts.Returned, fake.Count(queuetest.FakeInFlight))
		}
		for _, c := range fake.Log() {
			if c.Action == queuetest.FakeChangeVisibility && c.OpenReceives > 0 {
				t.Errorf("given back while %d receives were open", c.OpenReceives)
			}
		}
		r.w.Resume()
		after(time.Minute)
		r.once(1000)
		r.stop()
	})
}

func TestReopenedGateStillReturnsMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		send(t, fake, 500, "")
		fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault {
			return queuetest.FakeFault{Latency: 20 * time.Millisecond}
		})
		r := start(t, fake, &testApp{handle: done(10 * time.Millisecond)}, &Options{Concurrency: 5})
		for range 30 {
			after(17 * time.Millisecond)
			r.w.Pause("flapping")
			after(3 * time.Millisecond)
			r.w.Resume()
		}
		after(time.Minute)
		r.once(500)
		r.stop()
	})
}

func TestClosedGateReturnsWaitingFIFOMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
		r := start(t, fake, &testApp{handle: done(time.Minute)}, &Options{FIFO: true})
		r.send(10, "g")
		after(time.Second)
		r.w.Pause("now")
		after(time.Second)
		r.place(queuetest.FakeVisible, 9)
		after(2 * time.Minute)
		r.once(1)
		r.w.Resume()
		after(20 * time.Minute)
		r.once(10)
		r.inOrder()
		r.stop()
	})
}
