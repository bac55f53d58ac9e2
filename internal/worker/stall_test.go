package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

// The queue's clock does not advance: tests call Redeliver for that.
func (r *harness) suspend(d time.Duration) {
	now := time.Now()
	r.w.core.mu.Lock()
	r.w.recordStall(r.w.core.clock.advance(now, now.Sub(r.w.core.clock.last), d))
	r.w.core.mu.Unlock()
}

func TestSuspendExpiresDeliveriesInFlight(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for _, outcome := range []queue.Outcome{queue.Done, queue.Failed} {
			t.Run(fmt.Sprint("fifo ", fifo, " ", outcome), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					var settled []Settled
					var stalls, lapsed int
					fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: fifo})
					app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
						sleep(ctx, 50*time.Second)
						return queue.Result{Outcome: outcome}
					}}
					r := start(t, fake, app,
						&Options{FIFO: fifo, VisibilityTimeout: time.Minute, ErrorVisibilityTimeout: ptr(time.Duration(0)),
							Events: &Events{
								Settled:           func(s Settled) { mu.Lock(); settled = append(settled, s); mu.Unlock() },
								Stalled:           func(Stalled) { mu.Lock(); stalls++; mu.Unlock() },
								VisibilityExpired: func(VisibilityExpired) { mu.Lock(); lapsed++; mu.Unlock() },
							}})
					ids := r.send(1, "g")
					after(10 * time.Second)
					r.w.Pause("others receive now")
					r.suspend(10 * time.Minute)
					fake.Redeliver(ids[0])
					other, err := fake.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Visibility: ptr(time.Hour)})
					if err != nil || len(other) != 1 {
						t.Fatal(other, err)
					}
					after(2 * time.Minute)
					m, _ := fake.Message(ids[0])
					if m.Place != queuetest.FakeInFlight || time.Until(m.VisibleAt) < 50*time.Minute || fake.StaleChanges() != 0 {
						t.Errorf("the other worker's message: %+v, %d stale changes", m, fake.StaleChanges())
					}
					if len(settled) != 1 || !settled[0].Late || stalls != 1 || lapsed != 1 {
						t.Errorf("settled %+v, %d stalls, %d lapsed", settled, stalls, lapsed)
					}
					if r.w.messages.done.values[ids[0]] != struct{}{} || len(r.w.messages.done.values) != 0 {
						t.Errorf("a late success is not remembered as done: %v", r.w.messages.done.values)
					}
					r.stop()
				})
			})
		}
	}
}

func TestSuspendDropsUnpostedMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
		app := &testApp{handle: done(5 * time.Second)}
		r := start(t, fake, app, &Options{FIFO: true, VisibilityTimeout: time.Minute})
		r.send(10, "g")
		after(12 * time.Second)
		r.suspend(10 * time.Minute)
		after(20 * time.Second)
		if got := len(app.seen()); got != 3 {
			t.Errorf("%d messages received before the suspend were posted, want the 3 already started", got)
		}
		if c := r.w.Status().Counts; c.VisibilityExpired != 8 || c.Returned != 0 {
			t.Errorf("counts: %+v", c)
		}
		after(10 * time.Minute)
		r.place(queuetest.FakeDeleted, 10)
		r.inOrder()
		r.stop()
	})
}

func TestAnswerFromBeforeASuspendIsNotTrusted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{}, &Options{VisibilityTimeout: time.Minute})
		after(5 * time.Second)
		r.suspend(10 * time.Minute)
		r.send(3, "")
		after(time.Second)
		if got := len(r.app.seen()); got != 0 {
			t.Errorf("%d posted", got)
		}
		after(2 * time.Minute)
		r.once(3)
		r.stop()
	})
}

func TestLapsedMessageThatComesBackHereIsFinished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: true})
		r := start(t, fake, &testApp{handle: done(5 * time.Minute)}, &Options{FIFO: true, VisibilityTimeout: time.Minute})
		ids := r.send(2, "g")
		after(10 * time.Second)
		r.suspend(10 * time.Minute)
		after(time.Hour)
		r.place(queuetest.FakeDeleted, 2)
		r.inOrder()
		if got := len(r.app.byID()[ids[0]]); got != 1 {
			t.Errorf("the one in work was posted %d times", got)
		}
		r.stop()
	})
}

func TestLapsedMessageIsDroppedNotReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lapsed []VisibilityExpired
		w := New(queuetest.NewFake(nil), &testApp{}, &Options{Events: &Events{VisibilityExpired: func(l VisibilityExpired) {
			lapsed = append(lapsed, l)
		}}})
		now := time.Now()
		w.core.mu.Lock()
		h := &held{msg: queue.Message{ID: "m"}, stage: ready}
		h.hide(now.Add(-time.Hour), time.Minute)
		w.messages.held["m"] = h
		w.visibility.returnMessage(h, 0, now)
		left := len(w.visibility.returning) + len(w.messages.held)
		w.core.mu.Unlock()
		if left != 0 || len(lapsed) != 1 || lapsed[0].InWork {
			t.Errorf("%d left, events %+v", left, lapsed)
		}
	})
}
