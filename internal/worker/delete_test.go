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

func (r *harness) once(n int) {
	r.t.Helper()
	r.place(queuetest.FakeDeleted, n)
	posts := r.app.byID()
	if len(posts) != n {
		r.t.Errorf("%d messages were posted, want %d", len(posts), n)
	}
	for id, p := range posts {
		if len(p) != 1 {
			r.t.Errorf("%s was posted %d times", id, len(p))
		}
	}
}

func TestDeletesTravelInTensAndLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{KeepLog: true})
		r := start(t, fake, &testApp{}, nil)
		after(time.Second)
		began := time.Now()
		r.send(3, "")
		after(time.Second)
		r.send(10, "")
		after(time.Second)
		var deletes []queuetest.FakeCall
		for _, c := range fake.Log() {
			if c.Action == queuetest.FakeDelete {
				deletes = append(deletes, c)
			}
		}
		if len(deletes) != 2 || deletes[0].Entries != 3 || deletes[1].Entries != 10 {
			t.Fatalf("deletes: %+v", deletes)
		}
		if got := deletes[0].At.Sub(began); got != 100*time.Millisecond {
			t.Errorf("three lingered %v, want 100ms", got)
		}
		if got := deletes[1].At.Sub(began); got != time.Second {
			t.Errorf("ten left after %v, want at once", got-time.Second)
		}
		r.stop()
	})
}

func TestLingerIsCutShortNearTheEndOfTheVisibility(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(queuetest.NewFake(nil), &testApp{}, &Options{VisibilityTimeout: 10 * time.Second})
		w.core.phase = running
		now := time.Now()
		for _, tt := range []struct{ left, want time.Duration }{
			{10 * time.Second, 100 * time.Millisecond}, {2050 * time.Millisecond, 50 * time.Millisecond}, {time.Second, 0},
		} {
			h := &held{}
			h.hide(now.Add(tt.left-10*time.Second), 10*time.Second)
			w.deletes.pending = batcher{}
			w.deletes.queueDelete(h, now)
			if got := w.deletes.pending.due.Sub(now); got != tt.want {
				t.Errorf("%v left: lingers %v, want %v", tt.left, got, tt.want)
			}
		}
	})
}

func TestSlotIsFreeBeforeTheDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		send(t, fake, 20, "")
		fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeDelete {
				return queuetest.FakeFault{Latency: 5 * time.Second}
			}
			return queuetest.FakeFault{}
		})
		r := start(t, fake, &testApp{handle: done(100 * time.Millisecond)}, &Options{Concurrency: 1})
		after(3 * time.Second)
		if got := len(r.app.seen()); got != 20 {
			t.Errorf("%d deliveries in 3 s, want 20: a slow delete must not hold a slot", got)
		}
		after(10 * time.Second)
		r.once(20)
		r.stop()
	})
}

func TestFailedDeletesAreRepeatedNotThePosts(t *testing.T) {
	t.Parallel()
	unreachable := queuetest.FakeFault{Err: queue.ErrUnreachable}
	tests := []struct {
		name   string
		fifo   bool
		faults []queuetest.FakeFault
	}{
		{"answers lost", false,
			[]queuetest.FakeFault{{Err: queue.ErrUnreachable, Apply: true}, {Err: queue.ErrUnreachable, Apply: true}}},
		{"answers lost, FIFO", true,
			[]queuetest.FakeFault{{Err: queue.ErrUnreachable, Apply: true}, {Err: queue.ErrUnreachable, Apply: true}}},
		{"never arrived", false, []queuetest.FakeFault{unreachable, unreachable, unreachable, unreachable}},
		{"never arrived, FIFO", true, []queuetest.FakeFault{unreachable, unreachable, unreachable, unreachable}},
		{"throttled", false, []queuetest.FakeFault{{Err: queue.ErrThrottled}, {Err: queue.ErrThrottled}}},
		{"one entry of ten", false, []queuetest.FakeFault{{Err: queue.ErrUnreachable, Entries: []int{4}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: tt.fifo})
				fake.Fail(queuetest.FakeDelete, tt.faults...)
				r := start(t, fake, &testApp{}, &Options{FIFO: tt.fifo})
				r.send(10, "g")
				after(30 * time.Second)
				r.once(10)
				if lost := r.w.Status().Counts.DeletesLost; lost != 0 {
					t.Errorf("%d deletes lost", lost)
				}
				r.stop()
			})
		})
	}
}

func TestDoneMessageThatComesAgainIsDeletedUnposted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		final := 0
		fake := queuetest.NewFake(nil)
		fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeDelete {
				return queuetest.FakeFault{Err: queue.ErrThrottled}
			}
			return queuetest.FakeFault{}
		})
		r := start(t, fake, &testApp{},
			&Options{VisibilityTimeout: 30 * time.Second, Events: &Events{DeleteFailed: func(e DeleteFailed) {
				mu.Lock()
				defer mu.Unlock()
				if e.Final {
					final++
				}
			}}})
		r.send(5, "")
		after(time.Second)
		r.w.Pause("let the visibility pass")
		after(40 * time.Second)
		if final != 5 {
			t.Errorf("%d deletes given up when the visibility was over, want 5", final)
		}
		fake.SetFault(nil)
		r.w.Resume()
		after(time.Minute)
		r.once(5)
		if c := r.w.Status().Counts; c.Duplicates < 5 || c.DeletesLost < 5 {
			t.Errorf("counts: %+v", c)
		}
		if got := len(r.w.messages.done.values); got != 0 {
			t.Errorf("%d messages are remembered after their delete", got)
		}
		r.stop()
	})
}

func TestDuplicateDuringTheDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		fake.Fail(queuetest.FakeDelete, queuetest.FakeFault{Latency: 5 * time.Second})
		r := start(t, fake, &testApp{}, nil)
		ids := r.send(1, "")
		after(time.Second)
		fake.Redeliver(ids[0])
		after(10 * time.Second)
		r.once(1)
		if s := r.w.Status(); s.Unconfirmed != 0 || s.Counts.Duplicates != 1 {
			t.Errorf("%+v", s)
		}
		r.stop()
	})
}

func TestDeletesRefusedForGoodStopTheReceives(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{queue.ErrDenied, queue.ErrNoQueue} {
		t.Run(refusal.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var gates []GateChanged
				fake := queuetest.NewFake(nil)
				fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
					if c.Action == queuetest.FakeDelete {
						return queuetest.FakeFault{Err: refusal}
					}
					return queuetest.FakeFault{}
				})
				r := start(t, fake, &testApp{},
					&Options{Concurrency: 5, VisibilityTimeout: time.Minute, Events: &Events{GateChanged: func(g GateChanged) {
						mu.Lock()
						defer mu.Unlock()
						gates = append(gates, g)
					}}})
				r.send(200, "")
				after(time.Hour)
				posts := r.app.byID()
				for id, p := range posts {
					if len(p) > 2 {
						t.Errorf("%s was run %d times", id, len(p))
					}
				}
				if len(posts) > 100 {
					t.Errorf("%d of 200 messages were run before the receives stopped", len(posts))
				}
				receives := fake.Calls(queuetest.FakeReceive)
				deletes := fake.Calls(queuetest.FakeDelete)
				after(10 * time.Minute)
				if got := fake.Calls(queuetest.FakeReceive) - receives; got != 0 {
					t.Errorf("%d receives while deletes are refused", got)
				}
				if got := fake.Calls(queuetest.FakeDelete) - deletes; got < 15 || got > 60 {
					t.Errorf("%d deletes tried in ten minutes, want one each 15 to 30 s", got)
				}
				s := r.w.Status()
				if s.Receiving || len(s.Reasons) != 1 || s.Reasons[0].Block != DeleteRefused {
					t.Errorf("status: %+v", s.Reasons)
				}
				fake.SetFault(nil)
				after(time.Minute)
				r.once(200)
				mu.Lock()
				if last := gates[len(gates)-1]; !last.Open {
					t.Errorf("the gate did not open again: %+v", gates)
				}
				mu.Unlock()
				r.stop()
			})
		})
	}
}

func TestUnconfirmedDeletesBoundTheReceives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		send(t, fake, 3000, "")
		fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeDelete {
				return queuetest.FakeFault{Err: queue.ErrThrottled}
			}
			return queuetest.FakeFault{}
		})
		r := start(t, fake, &testApp{}, &Options{Concurrency: 10})
		after(20 * time.Second)
		if got := r.w.Status().Unconfirmed; got < 300 || got > 400 {
			t.Errorf("%d messages are done without a delete, want the bound of 330 and one round of receives", got)
		}
		fake.SetFault(nil)
		after(time.Minute)
		r.once(3000)
		r.stop()
	})
}

type short struct{ *queuetest.Fake }

func (s short) Delete(ctx context.Context, receipts []string) []error {
	if errs := s.Fake.Delete(ctx, receipts[:1]); errs != nil {
		return errs
	}
	return []error{nil}
}

func TestEntriesWithoutAResultAreNotTakenAsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := prepare(t, queuetest.NewFake(nil), &testApp{}, nil)
		r.w = New(short{r.fake}, r.app, nil)
		r.run()
		r.send(10, "")
		after(time.Minute)
		r.once(10)
		r.stop()
	})
}

func TestLateConfirmationOfADeleteProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeDelete {
				return queuetest.FakeFault{Err: queue.ErrDenied}
			}
			return queuetest.FakeFault{}
		})
		r := start(t, fake, &testApp{}, &Options{VisibilityTimeout: 30 * time.Second})
		r.send(1, "")
		after(time.Minute)
		other, err := fake.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Visibility: ptr(5 * time.Minute)})
		if err != nil || len(other) != 1 {
			t.Fatal(other, err)
		}
		fake.SetFault(nil)
		after(time.Minute)
		r.place(queuetest.FakeInFlight, 1)
		if !r.w.Status().Receiving {
			t.Error("deletes are accepted again, and the gate is closed")
		}
		after(10 * time.Minute)
		r.once(1)
		r.stop()
	})
}
