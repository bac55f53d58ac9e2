package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"tendril/queuetest"
)

func TestTuneChangesTheConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: done(time.Second)}
		r := prepare(t, queuetest.NewFake(nil), app, &Options{Concurrency: 4})
		r.send(1000, "")
		r.run()
		at := func(when string, want int) {
			t.Helper()
			app.mu.Lock()
			defer app.mu.Unlock()
			if app.working != want {
				t.Errorf("%s: %d in work, want %d", when, app.working, want)
			}
		}
		after(10*time.Second + 500*ms)
		at("before", 4)
		r.w.Tune(&Tuning{Concurrency: 9})
		after(time.Second)
		at("with more", 9)
		r.w.Tune(&Tuning{Concurrency: 2})
		after(500 * ms)
		after(2 * time.Second)
		at("with less", 2)
		if s := r.w.Status(); s.Concurrency != 2 || s.Limit != 2 {
			t.Errorf("status: %d of %d", s.Limit, s.Concurrency)
		}
		r.w.Tune(&Tuning{})
		after(5 * time.Second)
		at("by default", defaultConcurrency)
	})
}

func TestTuneChangesTheDelayAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: failed}
		r := prepare(t, queuetest.NewFake(nil), app,
			&Options{Concurrency: 1, VisibilityTimeout: time.Hour, ErrorVisibilityTimeout: new(10 * time.Second)})
		r.send(1, "")
		r.run()
		after(time.Second)
		r.w.Tune(&Tuning{ErrorVisibilityTimeout: new(100 * time.Second)})
		after(10 * time.Second)
		after(50 * time.Second)
		if n := len(app.seen()); n != 2 {
			t.Errorf("%d attempts after a minute, want 2: the second failure waits for 100 s", n)
		}
		r.w.Tune(&Tuning{Backoff: Backoff{Min: time.Second}})
		after(50 * time.Second)
		after(2 * time.Minute)
		if n := len(app.seen()); n < 10 {
			t.Errorf("%d attempts three minutes later, want ten and more", n)
		}
	})
}

func TestTuneChangesTheVisibilityOfLaterReceives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{handle: done(100 * time.Second)}
		r := prepare(t, queuetest.NewFake(nil), app, &Options{Concurrency: 2, VisibilityTimeout: 60 * time.Second})
		r.send(1, "")
		r.run()
		after(time.Second)
		r.w.Tune(&Tuning{Concurrency: 2, VisibilityTimeout: 600 * time.Second})
		after(30 * time.Second)
		r.send(1, "")
		after(3 * time.Minute)

		// The first message is extended after 30, 60 and 90 s.
		if c := r.w.Status().Counts; c.Done != 2 || c.VisibilityExpired > 0 || c.Extended != 3 {
			t.Errorf("%d extensions, want 3; %+v", c.Extended, c)
		}
	})
}

func TestBatchWindowGrowsAgainWithTheVisibilityTimeout(t *testing.T) {
	t.Parallel()
	w := New(nil, &batchApp{}, &Options{VisibilityTimeout: 5 * time.Minute, Batch: Batch{Size: 10, Window: time.Minute}})
	for _, tt := range []struct{ visibility, window time.Duration }{
		{8 * time.Second, 3 * time.Second}, {16 * time.Second, 6 * time.Second}, {5 * time.Minute, time.Minute},
	} {
		w.Tune(&Tuning{VisibilityTimeout: tt.visibility})
		if got := w.core.opts.Batch.Window; got != tt.window {
			t.Errorf("visibility timeout %v: batches wait for %v, want %v", tt.visibility, got, tt.window)
		}
	}
}
