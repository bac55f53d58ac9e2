package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type probedApp struct {
	*testApp
	takes time.Duration
}

func (a *probedApp) Probe(ctx context.Context) error {
	err := a.testApp.Probe(ctx)
	if err != nil {
		sleep(ctx, a.takes)
	}
	return err
}

func TestGateClosesWhenAnIdleAppGoesAway(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		every, hang time.Duration
		within      time.Duration
	}{
		{"connections are refused", 10 * time.Second, 0, 12 * time.Second},
		{"connections are not answered", 10 * time.Second, 4 * time.Second, 20 * time.Second},
		{"the health check is not answered", 5 * time.Second, 5 * time.Second, 17 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			app := &probedApp{testApp: &testApp{}, takes: tt.hang}
			r := prepare(t, queuetest.NewFake(nil), app.testApp, nil)
			r.w = New(r.fake, app, &Options{ProbeIdle: tt.every})
			r.run()
			r.send(1, "")
			after(time.Hour + 3*time.Second)
			if n := len(app.probes); n > int(time.Hour/tt.every)+2 || !r.w.Status().Receiving {
				t.Errorf("%s: %d probes in an idle hour, receiving %t", tt.name, n, r.w.Status().Receiving)
			}
			app.setDown(true)
			gone := time.Now()
			after(tt.within)
			reasons := r.w.Status().Reasons
			if len(reasons) != 1 || reasons[0].Block != AppDown ||
				reasons[0].Text != "the app is not ready: connection refused" {
				t.Fatalf("%s: %v after its end the reasons are %+v", tt.name, tt.within, reasons)
			}
			if since := gone.Sub(reasons[0].Since); since < 0 || since > tt.every+time.Second {
				t.Errorf("%s: it counts as down from %v before its end on", tt.name, since)
			}
			receives := r.fake.Calls(queuetest.FakeReceive)
			ids := r.send(1, "")
			after(time.Hour)
			if n := r.fake.Calls(queuetest.FakeReceive) - receives; n > 0 {
				t.Errorf("%s: %d receives for an app that is away", tt.name, n)
			}
			app.setDown(false)
			after(11 * time.Second)
			if p := app.byID()[ids[0]]; len(p) != 1 || p[0].receives != 1 {
				t.Errorf("%s: the message for the app that is back had the deliveries %+v", tt.name, p)
			}
			r.stop()
		})
	}
}

func TestAppThatAnswersDeliveriesIsNotProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: done(time.Minute)}
		r := start(t, queuetest.NewFake(nil), app, &Options{ProbeIdle: 10 * time.Second})
		after(time.Second)
		for range 30 {
			r.send(1, "")
			after(65 * time.Second)
		}
		if len(app.probes) != 1 {
			t.Errorf("%d probes of a busy app", len(app.probes))
		}
		r.once(30)
		r.stop()
	})
}

func TestOneFailedProbeOfAnIdleAppIsNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{}
		closed := 0
		r := start(t, queuetest.NewFake(nil), app,
			&Options{ProbeIdle: 10 * time.Second, Events: &Events{GateChanged: func(g GateChanged) {
				if !g.Open {
					closed++
				}
			}}})
		after(5 * time.Second)
		app.setDown(true)
		after(5*time.Second + 500*time.Millisecond)
		probes := len(app.probes)
		app.setDown(false)
		after(time.Minute)
		if probes != 2 || closed > 0 || !r.w.Status().Receiving {
			t.Errorf("%d probes before it was back, closed %d times, receiving %t", probes, closed, r.w.Status().Receiving)
		}
		r.stop()
	})
}

func TestRefusedMessageComesAgainWithTheApp(t *testing.T) {
	t.Parallel()
	for _, uncounted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{UncountsUnread: uncounted, MaxReceives: 3})
			app := &testApp{}
			var ends []Settled
			r := start(t, fake, app, &Options{UncountedReturns: uncounted, Events: &Events{Settled: func(s Settled) {
				ends = append(ends, s)
			}}})
			after(time.Second)
			app.setDown(true)
			ids := r.send(1, "")
			after(time.Second)
			r.place(queuetest.FakeVisible, 1)
			after(10 * time.Minute)
			app.setDown(false)
			after(probeLimit + 100*time.Millisecond)
			receives := 2
			if uncounted {
				receives = 1
			}
			if p := app.byID()[ids[0]]; len(p) != 1 || p[0].receives != receives {
				t.Errorf("takes back %t: the deliveries are %+v", uncounted, p)
			}
			if len(ends) != 2 || ends[0].Outcome != queue.Unreached || !ends[0].NextRetry.IsZero() ||
				ends[1].Outcome != queue.Done || ends[1].Attempt != 1 {
				t.Errorf("takes back %t: settled %+v", uncounted, ends)
			}
			r.stop()
		})
	}
}

// If returned immediately, refused messages would use up their receives within a minute.
func TestRefusalsBetweenProbesKeepTheVisibilityTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: func(context.Context, *queue.Message) queue.Result {
			return queue.Result{Outcome: queue.Unreached, Reason: "TLS handshake failed"}
		}}
		fake := queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 3})
		r := start(t, fake, app, nil)
		r.send(1, "")
		after(defaultVisibilityTimeout)
		if got := r.w.Status().Counts.Received; got != 2 {
			t.Errorf("%d receives within a visibility timeout, want the one of the first refusal and one more", got)
		}
		r.place(queuetest.FakeDead, 0)
		r.stop()
	})
}

func TestRefusedMessagesOfAGroupKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, UncountsUnread: true})
		app := &testApp{handle: done(time.Second)}
		r := start(t, fake, app, &Options{FIFO: true, UncountedReturns: true})
		r.send(10, "g")
		after(2500 * time.Millisecond)
		app.setDown(true)
		after(time.Minute)
		r.place(queuetest.FakeVisible, 7)
		app.setDown(false)
		after(20 * time.Second)
		r.once(10)
		r.inOrder()
		r.stop()
	})
}
