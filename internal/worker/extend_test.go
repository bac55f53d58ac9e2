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

func TestLongWorkIsKeptHidden(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: fifo, KeepLog: true})
			r := start(t, fake, &testApp{handle: done(time.Hour)},
				&Options{FIFO: fifo, Concurrency: 10, VisibilityTimeout: time.Minute})
			for _, group := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				r.send(1, group)
			}
			after(2 * time.Hour)
			r.once(8)
			changes, entries := 0, 0
			for _, c := range fake.Log() {
				if c.Action == queuetest.FakeChangeVisibility {
					changes++
					entries += c.Entries
				}
			}
			if changes < 110 || changes > 130 || entries < 8*110 || entries > 8*130 {
				t.Errorf("%d extensions in %d calls, want about 960 in 120", entries, changes)
			}
			if c := r.w.Status().Counts; c.VisibilityExpired+c.Duplicates > 0 || c.Extended < int64(entries)-8 {
				t.Errorf("counts: %+v", c)
			}
			r.stop()
		})
	}
}

func TestExtensionBeginsAtHalfOfTheVisibility(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const v = 60 * time.Second
	tests := []struct {
		name     string
		h        held
		age      time.Duration
		received time.Duration
		want     time.Duration
	}{
		{"in work, young", held{stage: posting}, 29 * time.Second, 0, 0},
		{"in work, half", held{stage: posting}, 30 * time.Second, 0, v},
		{"waiting, a third", held{stage: waiting}, 20 * time.Second, 0, v},
		{"waiting, young", held{stage: waiting}, 19 * time.Second, 0, 0},
		{"ready: given back instead", held{stage: ready}, 40 * time.Second, 0, 0},
		{"deleting", held{stage: deleting}, 40 * time.Second, 0, 0},
		{"one is under way", held{stage: posting, changing: true}, 40 * time.Second, 0, 0},
		{"lapsed", held{stage: posting, lapsed: true}, 70 * time.Second, 0, 0},
		{"not yet again", held{stage: posting, nextExtend: now.Add(1)}, 40 * time.Second, 0, 0},
		{"the last before 12 h", held{stage: posting}, 30 * time.Second, 12*time.Hour - 45*time.Second, 40 * time.Second},
		{"12 h are up", held{stage: posting}, 30 * time.Second, 12*time.Hour - 30*time.Second, 0},
	}
	for _, tt := range tests {
		tt.h.visibility = v
		tt.h.hide(now.Add(-tt.age), v)
		tt.h.receivedAt = now.Add(-tt.received)
		if got := tt.h.extension(now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestNothingIsHiddenForMoreThanTwelveHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		r := start(t, fake, &testApp{handle: done(13 * time.Hour)}, &Options{VisibilityTimeout: 10 * time.Minute})
		ids := r.send(1, "")
		after(12*time.Hour + time.Minute)
		if m, _ := fake.Message(ids[0]); m.Receives != 2 || m.Place != queuetest.FakeInFlight {
			t.Errorf("after 12 h: %+v", m)
		}
		after(2 * time.Hour)
		r.once(1)
		if c := r.w.Status().Counts; c.Duplicates != 1 || fake.StaleChanges() > 0 {
			t.Errorf("counts: %+v, %d stale changes", c, fake.StaleChanges())
		}
		r.stop()
	})
}

func TestExtensionNeverOverwritesARetryDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		fake.Fail(queuetest.FakeChangeVisibility, queuetest.FakeFault{Latency: 10 * time.Second})
		app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
			sleep(ctx, 39*time.Second)
			return failed(ctx, m)
		}}
		r := start(t, fake, app, &Options{VisibilityTimeout: time.Minute, ErrorVisibilityTimeout: ptr(3 * time.Second)})
		ids := r.send(1, "")
		after(41 * time.Second)
		m, _ := fake.Message(ids[0])
		if left := time.Until(m.VisibleAt); left != time.Second {
			t.Errorf("the message is hidden for another %v, want the rest of the 3 s of the error visibility timeout", left)
		}
		after(4 * time.Second)
		if got := r.w.Status().InWork; got != 1 {
			t.Errorf("%d deliveries under way, want the second attempt", got)
		}
		after(time.Hour)
		r.stop()
	})
}

func TestFailedExtensionsAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, err := range []error{queue.ErrThrottled, queue.ErrUnreachable, queue.ErrDenied} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := queuetest.NewFake(nil)
				fault := queuetest.FakeFault{Err: err}
				fake.Fail(queuetest.FakeChangeVisibility, fault, fault, fault)
				r := start(t, fake, &testApp{handle: done(30 * time.Minute)}, nil)
				r.send(20, "")
				after(time.Hour)
				r.once(20)
				if calls := fake.Calls(queuetest.FakeChangeVisibility); calls < 20 || calls > 40 {
					t.Errorf("%d calls", calls)
				}
				r.stop()
			})
		})
	}
}

func TestLapsedReceiptIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var late []Settled
		fake := queuetest.NewFake(nil)
		fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeChangeVisibility {
				return queuetest.FakeFault{Err: queue.ErrUnreachable}
			}
			return queuetest.FakeFault{}
		})
		app := &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
			sleep(ctx, 100*time.Second)
			return failed(ctx, m)
		}}
		r := start(t, fake, app,
			&Options{VisibilityTimeout: time.Minute, ErrorVisibilityTimeout: ptr(time.Duration(0)), Events: &Events{
				Settled: func(s Settled) {
					mu.Lock()
					defer mu.Unlock()
					late = append(late, s)
				},
			}})
		ids := r.send(1, "")
		r.w.Pause("take no second receive")
		r.w.Resume()
		after(time.Second)
		r.w.Pause("take no second receive")
		after(70 * time.Second)
		if m, _ := fake.Message(ids[0]); m.Place != queuetest.FakeVisible {
			t.Errorf("the message is %s, want visible", m.Place)
		}
		fake.SetFault(nil)
		other, _ := fake.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Visibility: ptr(time.Hour)})
		after(time.Minute)
		if m, _ := fake.Message(ids[0]); len(other) != 1 || time.Until(m.VisibleAt) < 50*time.Minute {
			t.Errorf("the other worker's message is visible in %v", time.Until(m.VisibleAt))
		}
		if fake.StaleChanges() != 0 {
			t.Errorf("%d changes with a lapsed receipt", fake.StaleChanges())
		}
		if len(late) != 1 || !late[0].Late {
			t.Errorf("settled: %+v", late)
		}
		if got := r.w.Status().Counts.Late; got != 1 {
			t.Errorf("%d deliveries are counted as late, want 1", got)
		}
		r.stop()
	})
}

func TestErrorVisibilityTimeoutTravelsInTens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 3})
		r := start(t, fake, &testApp{handle: failed}, &Options{ErrorVisibilityTimeout: ptr(10 * time.Second)})
		r.send(100, "")
		after(time.Minute)
		r.place(queuetest.FakeDead, 100)
		if got := len(r.app.seen()); got != 300 {
			t.Errorf("%d deliveries, want 3 for each of 100", got)
		}
		if got := fake.Calls(queuetest.FakeChangeVisibility); got > 36 {
			t.Errorf("%d calls for 300 changes, want about 30", got)
		}
		for id, posts := range r.app.byID() {
			for i := 1; i < len(posts); i++ {
				if gap := posts[i].start.Sub(posts[i-1].end); gap < 10*time.Second || gap > 11*time.Second {
					t.Errorf("%s came again after %v, want 10 s", id, gap)
				}
			}
		}
		r.stop()
	})
}

func TestFailedMessageWaitsOutItsVisibilityByDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(nil)
		r := start(t, fake, &testApp{handle: failed}, nil)
		ids := r.send(1, "")
		after(10 * time.Minute)
		posts := r.app.byID()[ids[0]]
		if len(posts) != 3 {
			t.Fatalf("%d attempts in ten minutes, want 3", len(posts))
		}
		if gap := posts[1].start.Sub(posts[0].start); gap != 300*time.Second {
			t.Errorf("second attempt after %v, want 300 s", gap)
		}
		if got := fake.Calls(queuetest.FakeChangeVisibility); got != 0 {
			t.Errorf("%d changes of visibility, want none", got)
		}
		r.stop()
	})
}

// A retry could affect another worker's receive.
func TestAmbiguousDelayIsNotRepeatedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := queuetest.NewFake(&queuetest.FakeOptions{KeepLog: true})
		fake.SetFault(func(c queuetest.FakeCall) queuetest.FakeFault {
			if c.Action == queuetest.FakeChangeVisibility {
				return queuetest.FakeFault{Err: queue.ErrUnreachable, Apply: true}
			}
			return queuetest.FakeFault{}
		})
		r := start(t, fake, &testApp{handle: failed}, &Options{ErrorVisibilityTimeout: ptr(2 * time.Second)})
		r.send(1, "")
		after(20 * time.Second)
		if fake.StaleChanges() != 0 {
			t.Errorf("%d changes with an old receipt", fake.StaleChanges())
		}
		if got := len(r.app.seen()); got < 3 {
			t.Errorf("%d attempts in 20 s, the delay of 2 s was applied", got)
		}
		r.stop()
	})
}

func TestLateVisibilityChangeFailsWithItsOwnReason(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, purpose := range []purpose{extendVisibility, delayRetry, returnMessage} {
		var reported []ChangeFailed
		w := New(nil, instant{}, &Options{Events: &Events{
			ChangeFailed: func(f ChangeFailed) { reported = append(reported, f) },
		}})
		late := pending{h: &held{msg: queue.Message{ID: "a"}}, purpose: purpose, until: now}
		w.core.mu.Lock()
		sendable := w.visibility.selectSendable([]pending{late}, now)
		w.core.mu.Unlock()
		if len(sendable) > 0 || len(reported) != 1 ||
			reported[0].Err.Error() != "the visibility timeout expired before it was changed" {
			t.Errorf("%s: sent %d changes and reported %+v", purpose, len(sendable), reported)
		}
	}
}
