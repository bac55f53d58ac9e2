package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

func TestDrainFinishesDeletesAndGivesBack(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprint("fifo ", fifo), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: fifo, KeepLog: true})
				for i := range 500 {
					send(t, fake, 1, fmt.Sprint("group ", i%60))
				}
				fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault {
					return queuetest.FakeFault{Latency: 20 * time.Millisecond}
				})
				app := &testApp{handle: done(15 * time.Millisecond)}
				r := start(t, fake, app, &Options{Concurrency: 10, FIFO: fifo})
				after(207 * time.Millisecond)
				before := r.w.Status()
				if before.InWork == 0 || before.Prefetched+before.Waiting == 0 || fake.OpenReceives() == 0 {
					t.Fatalf("the test proves nothing: %+v", before)
				}
				began := time.Now()
				r.stop()
				if took := time.Since(began); took > 300*time.Millisecond {
					t.Errorf("the drain took %v", took)
				}
				deleted := fake.Count(queuetest.FakeDeleted)
				r.place(queuetest.FakeVisible, 500-deleted)
				posts := app.byID()
				if len(posts) != deleted {
					t.Errorf("%d messages were posted and %d deleted", len(posts), deleted)
				}
				for _, c := range fake.Log() {
					if c.Action == queuetest.FakeReceive && c.At.After(began) {
						t.Errorf("received %v after the stop", c.At.Sub(began))
					}
					if c.Action == queuetest.FakeChangeVisibility && c.OpenReceives > 0 {
						t.Errorf("given back while %d receives were open", c.OpenReceives)
					}
				}
				s := r.w.Status()
				if s.Phase != "stopped" || s.InWork+s.Prefetched+s.Waiting+s.Unconfirmed+fake.OpenReceives() != 0 ||
					len(r.w.messages.held) != 0 {
					t.Errorf("after the drain: %+v, %d held", s, len(r.w.messages.held))
				}
			})
		})
	}
}

func TestIdleDrainIsQuick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{}, nil)
		after(5 * time.Second)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("an idle worker took %v to stop", took)
		}
	})
}

func TestDrainKeepsLongWorkHidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{handle: done(10 * time.Minute)},
			&Options{VisibilityTimeout: time.Minute})
		r.send(5, "")
		after(time.Second)
		began := time.Now()
		r.stop()
		r.once(5)
		if took := time.Since(began); took < 9*time.Minute {
			t.Errorf("the drain took %v, the work ten minutes", took)
		}
	})
}

func TestDrainWithoutAnswerFromTheApp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{down: true}, nil)
		after(time.Minute)
		r.stop()
	})
}

func TestAbortLeavesItsMessagesToTheirVisibility(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		aborted := 0
		fake := queuetest.NewFake(nil)
		app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
			if m.Body == "body 0" {
				sleep(ctx, time.Hour)
				return queue.Result{Outcome: queue.Done, Status: 200}
			}
			return done(time.Hour)(ctx, m)
		}}
		r := start(t, fake, app,
			&Options{Concurrency: 5, VisibilityTimeout: 2 * time.Minute, ErrorVisibilityTimeout: ptr(time.Duration(0)),
				Events: &Events{Settled: func(s Settled) {
					mu.Lock()
					defer mu.Unlock()
					if s.Aborted {
						aborted++
					}
				}}})
		r.send(5, "")
		after(10 * time.Second)
		r.drain()
		after(10 * time.Second)
		if s := r.w.Status(); s.Phase != "draining" || s.InWork != 5 || !hasBlock(s.Reasons, Draining) {
			t.Errorf("status: %+v", s)
		}
		r.abort()
		err := <-r.ended
		var stopped *stopError
		if !errors.As(err, &stopped) || stopped.Aborted != 4 || stopped.Undeleted != 0 || aborted != 4 {
			t.Errorf("Run: %v, %d events, want 4 aborted", err, aborted)
		}
		if !strings.Contains(err.Error(), "4 deliveries aborted") {
			t.Errorf("error text: %v", err)
		}
		r.place(queuetest.FakeDeleted, 1)
		r.place(queuetest.FakeInFlight, 4)
		time.Sleep(2 * time.Minute)
		r.place(queuetest.FakeVisible, 4)
	})
}

func TestAbortGivesUpOnADeadQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		r := start(t, fake, &testApp{handle: done(time.Second)}, nil)
		r.send(5, "")
		after(500 * time.Millisecond)
		fake.SetFault(func(queuetest.FakeCall) queuetest.FakeFault {
			return queuetest.FakeFault{Latency: time.Hour}
		})
		after(time.Second)
		r.drain()
		after(10 * time.Second)
		began := time.Now()
		r.abort()
		err := <-r.ended
		if took := time.Since(began); took > abortGrace {
			t.Errorf("the abort took %v", took)
		}
		var stopped *stopError
		if !errors.As(err, &stopped) || stopped.Undeleted != 5 || stopped.Aborted != 0 {
			t.Errorf("Run: %v, want 5 not deleted", err)
		}
	})
}

func TestAbortWithoutDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{handle: done(time.Hour)}, &Options{Concurrency: 5})
		r.send(25, "")
		after(time.Second)
		r.abort()
		var stopped *stopError
		if err := <-r.ended; !errors.As(err, &stopped) || stopped.Aborted != 5 {
			t.Errorf("Run: %v, want 5 aborted", err)
		}
		r.place(queuetest.FakeVisible, 20)
		r.place(queuetest.FakeInFlight, 5)
	})
}

func TestDrainWhileDeletesAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeDelete {
				return queuetest.FakeFault{Err: queue.ErrDenied}
			}
			return queuetest.FakeFault{}
		})
		r := start(t, fake, &testApp{}, nil)
		r.send(3, "")
		after(time.Minute)
		r.drain()
		began := time.Now()
		var stopped *stopError
		if err := <-r.ended; !errors.As(err, &stopped) || stopped.Undeleted != 3 {
			t.Errorf("Run: %v, want 3 not deleted", err)
		}
		if took := time.Since(began); took > 31*time.Second {
			t.Errorf("the drain took %v", took)
		}
		r.abort()
	})
}

func TestRunTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{}, nil)
		after(time.Second)
		if err := r.w.Run(t.Context(), t.Context()); !errors.Is(err, errUsed) {
			t.Errorf("second Run: %v", err)
		}
		r.stop()
		r.w.Pause("after the end")
		r.w.Gate(true, "")
		r.w.Resume()
		if s := r.w.Status(); s.Phase != "stopped" || r.fake.OpenReceives() != 0 {
			t.Errorf("status: %+v", s)
		}
	})
}

func TestPanicFailsOneDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var reasons []string
		app := &panicking{}
		r := prepare(t, queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 1}), &testApp{}, nil)
		r.w = New(r.fake, app, &Options{ErrorVisibilityTimeout: ptr(time.Second), Events: &Events{Settled: func(s Settled) {
			mu.Lock()
			defer mu.Unlock()
			reasons = append(reasons, s.Reason)
		}}})
		r.run()
		r.send(20, "")
		after(time.Minute)
		r.place(queuetest.FakeDeleted, 19)
		r.place(queuetest.FakeDead, 1)
		if got := strings.Join(reasons, ""); got != "delivery panicked" {
			t.Errorf("reasons: %q", got)
		}
		r.stop()
	})
}

type panicking struct{ instant }

func (panicking) Deliver(_ context.Context, m *queue.Message) queue.Result {
	if m.Body == "body 7" {
		panic("poison")
	}
	return queue.Result{Outcome: queue.Done, Status: 200}
}

func TestNothingLingersInADrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, queuetest.NewFake(nil), &testApp{}, &Options{DeleteLinger: time.Second})
		after(time.Second)
		r.send(3, "")
		after(400 * time.Millisecond)
		began := time.Now()
		r.stop()
		r.once(3)
		if took := time.Since(began); took >= 300*time.Millisecond {
			t.Errorf("the drain took %v, the deletes lingered", took)
		}
	})
}
