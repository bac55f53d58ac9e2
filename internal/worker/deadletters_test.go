package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

var errNotSent = errors.New("the dead-letter queue is gone")

type letterQueue struct {
	*queuetest.Fake
	slow   time.Duration
	refuse func(m *queue.Message) error
	none   bool

	mu      sync.Mutex
	letters []queue.DeadLetter
	calls   int
}

func (q *letterQueue) TakesDeadLetters(bool) bool { return !q.none }

func (q *letterQueue) DeadLetter(ctx context.Context, letters []queue.DeadLetter) []error {
	errs := make([]error, len(letters))
	if !sleep(ctx, q.slow) {
		return slices.Repeat([]error{ctx.Err()}, len(letters))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	for i, l := range letters {
		if q.refuse != nil {
			errs[i] = q.refuse(l.Message)
		}
		if errs[i] == nil {
			q.letters = append(q.letters, l)
		}
	}
	return errs
}

func (q *letterQueue) bodies() (all []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.letters {
		all = append(all, l.Message.Body)
	}
	return all
}

type failingBatches struct{ *testApp }

func (a failingBatches) DeliverBatch(_ context.Context, msgs []*queue.Message) []queue.Result {
	return slices.Repeat([]queue.Result{{Status: 500, Reason: "HTTP 500"}}, len(msgs))
}

func lettersWorker(t *testing.T, q *letterQueue, app *testApp, o Options) (r *harness, events func() []DeadLettered) {
	t.Helper()
	app.fake = q.Fake
	var mu sync.Mutex
	var seen []DeadLettered
	o.Events = JoinEvents(cmp.Or(o.Events, &Events{}), &Events{DeadLettered: func(d DeadLettered) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, d)
	}})
	if o.ErrorVisibilityTimeout == nil {
		o.ErrorVisibilityTimeout = ptr(time.Second)
	}
	r = &harness{t: t, fake: q.Fake, app: app, w: New(q, app, &o), ended: make(chan error, 1)}
	if o.Batch.Size > 1 {
		r.w = New(q, failingBatches{app}, &o)
	}
	r.run()
	return r, func() []DeadLettered {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

func TestLastFailureGoesToTheDeadLetterQueueWithItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 2, KeepLog: true})}
		r, events := lettersWorker(t, q, &testApp{handle: func(ctx context.Context, m *queue.Message) queue.Result {
			sleep(ctx, 20*time.Millisecond)
			return queue.Result{Status: 500, Reason: "HTTP 500", Answer: "no such order"}
		}}, Options{MaxReceives: 2, VisibilityTimeout: time.Minute})
		after(time.Second)
		began := time.Now()
		r.send(25, "")
		after(10 * time.Second)
		r.place(queuetest.FakeDeleted, 25)
		if len(q.letters) != 25 || q.calls != 3 || len(events()) != 25 {
			t.Errorf("%d letters in %d calls, %d events; want 25 in 3", len(q.letters), q.calls, len(events()))
		}
		for _, l := range q.letters {
			f := l.Failure
			if l.Message.ID != f.MessageID || !strings.HasPrefix(l.Message.Body, "body ") || f.Reason != "HTTP 500" ||
				f.Status != 500 || f.Answer != "no such order" || f.Attempts != 2 || f.Receives != 2 || f.DurationMS != 20 ||
				f.FailedAt.Before(began) || f.SentAt.IsZero() {
				t.Fatalf("letter %+v of %+v", f, l.Message)
			}
		}
		if posts := len(r.app.seen()); posts != 50 {
			t.Errorf("%d posts, want 2 for each of 25", posts)
		}
		r.stop()
	})
}

func TestOtherFailuresStayInTheQueue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		maxReceives int
		result      queue.Result
		want        queuetest.FakePlace
	}{
		"the policy is not known":          {0, queue.Result{Status: 500}, queuetest.FakeDead},
		"the policy grants more receives":  {3, queue.Result{Status: 500}, queuetest.FakeDead},
		"the app was not reached":          {2, queue.Result{Outcome: queue.Unreached}, queuetest.FakeDead},
		"done at the last receive as well": {2, queue.Result{Outcome: queue.Done}, queuetest.FakeDeleted},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 2})}
			r, events := lettersWorker(t, q, &testApp{handle: func(context.Context, *queue.Message) queue.Result {
				return tt.result
			}}, Options{MaxReceives: tt.maxReceives, VisibilityTimeout: time.Minute})
			r.send(5, "")
			after(time.Hour)
			r.place(tt.want, 5)
			if len(q.letters) > 0 || len(events()) > 0 {
				t.Errorf("%s: %d letters, %d events", name, len(q.letters), len(events()))
			}
			r.stop()
		})
	}
}

func TestDeadLetterThatIsRefusedIsLeftToTheRedrivePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 2}),
			refuse: func(m *queue.Message) error {
				if m.Body == "body 3" {
					return errNotSent
				}
				return nil
			}}
		r, events := lettersWorker(t, q, &testApp{handle: failed}, Options{MaxReceives: 2, VisibilityTimeout: time.Minute})
		r.send(10, "")
		after(10 * time.Minute)
		r.place(queuetest.FakeDeleted, 9)
		r.place(queuetest.FakeDead, 1)
		refused := 0
		for _, e := range events() {
			if errors.Is(e.Err, errNotSent) {
				refused++
			}
		}
		if posts := len(r.app.byID()["m-000004"]); posts != 2 || refused != 1 || len(events()) != 10 {
			t.Errorf("%d posts of the refused message, %d of %d events of refusals", posts, refused, len(events()))
		}
		r.stop()
	})
}

func TestMessageStaysHiddenUntilTheDeadLetterQueueAccepts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 2}), slow: 15 * time.Second}
		r, _ := lettersWorker(t, q, &testApp{handle: failed}, Options{MaxReceives: 2, VisibilityTimeout: 4 * time.Second})
		r.send(1, "")
		after(10 * time.Second)
		r.place(queuetest.FakeInFlight, 1)
		r.stop()
		r.place(queuetest.FakeDeleted, 1)
		if len(q.letters) != 1 {
			t.Errorf("%d letters, want 1", len(q.letters))
		}
	})
}

func TestDeadLetterIsSentOnceAlthoughItsDeleteFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 9})}
		gone := &queue.Error{Code: queue.CodeReceiptHandleIsInvalid}
		q.Fail(queuetest.FakeDelete, queuetest.FakeFault{Err: gone}, queuetest.FakeFault{Err: gone})
		var mu sync.Mutex
		var lost []DeleteFailed
		r, _ := lettersWorker(t, q, &testApp{handle: failed}, Options{MaxReceives: 2, VisibilityTimeout: 4 * time.Second,
			Events: &Events{DeleteFailed: func(d DeleteFailed) {
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, d)
			}}})
		r.send(1, "")
		after(10 * time.Minute)
		r.place(queuetest.FakeDeleted, 1)
		if len(q.letters) != 1 || len(r.app.seen()) != 2 || len(lost) != 2 || !lost[0].Final || !lost[0].DeadLetter {
			t.Errorf("%d letters, %d posts, lost deletes %+v", len(q.letters), len(r.app.seen()), lost)
		}
		r.stop()
	})
}

func TestDeadLettersOfAGroupKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{FIFO: true, MaxReceives: 2}),
				slow: 300 * time.Millisecond}
			r, _ := lettersWorker(t, q, &testApp{handle: failed}, Options{FIFO: true, MaxReceives: 2,
				VisibilityTimeout: time.Minute, Batch: Batch{Size: batch}})
			for _, group := range []string{"a", "b", "c"} {
				r.send(12, group)
			}
			after(2 * time.Hour)
			r.place(queuetest.FakeDeleted, len(q.letters))
			r.place(queuetest.FakeDead, 36-len(q.letters))
			last := map[string]int{}
			for _, l := range q.letters {
				var n int
				if _, err := fmt.Sscanf(l.Message.Body, "body %d", &n); err != nil || n < last[l.Message.GroupID] {
					t.Errorf("%s of group %s came after number %d", l.Message.Body, l.Message.GroupID, last[l.Message.GroupID])
				}
				last[l.Message.GroupID] = n
			}
			if len(q.letters) < 27 {
				t.Errorf("batches of %d: %d letters of 36: %v", batch, len(q.letters), q.bodies())
			}
			r.stop()
		})
	}
}

func TestUnsentDeadLettersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 1}), slow: time.Hour}
		r, _ := lettersWorker(t, q, &testApp{handle: failed}, Options{MaxReceives: 1, VisibilityTimeout: time.Hour})
		r.send(3000, "")
		after(10 * time.Second)
		r.w.core.mu.Lock()
		if n := len(r.w.letters.pending.entries); n == 0 || n > maxUnsentLetters {
			t.Errorf("%d messages wait for the dead-letter queue", n)
		}
		r.w.core.mu.Unlock()
		r.drain()
		r.abort()
		<-r.ended
	})
}

func TestInstructionSendsToTheDeadLetterQueueAtOnce(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{FIFO: fifo, MaxReceives: 9}),
				slow: 50 * time.Millisecond}
			var settled []Settled
			app := &testApp{handle: func(_ context.Context, m *queue.Message) queue.Result {
				if m.Body == "body 2" {
					return queue.Result{Status: 422, Reason: "HTTP 422", Instruction: queue.TerminalStatus}
				}
				return queue.Result{Outcome: queue.Done, Status: 200}
			}}
			r, events := lettersWorker(t, q, app, Options{FIFO: fifo, VisibilityTimeout: time.Minute, Concurrency: 1,
				Events: &Events{Settled: func(s Settled) { settled = append(settled, s) }}})
			r.send(5, map[bool]string{true: "g"}[fifo])
			after(2 * time.Second)
			r.place(queuetest.FakeDeleted, 5)
			if got := q.bodies(); !slices.Equal(got, []string{"body 2"}) || len(r.app.seen()) != 5 {
				t.Errorf("FIFO %t: dead letters %q, %d posts of 5", fifo, got, len(r.app.seen()))
			}
			if e := events(); len(e) != 1 || e[0].Instruction != queue.TerminalStatus || e[0].Err != nil {
				t.Errorf("FIFO %t: events %+v", fifo, e)
			}
			for _, s := range settled {
				if s.DeadLettering != (s.Status == 422) || s.DeadLettering && !s.NextRetry.IsZero() {
					t.Errorf("FIFO %t: settled %+v", fifo, s)
				}
			}
			r.stop()
		})
	}
}

func TestInstructionWithoutADeadLetterQueueIsAFailure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		none   bool
		refuse func(*queue.Message) error
		events int
		second time.Duration
	}{
		"there is none":    {none: true, events: 0, second: time.Second},
		"it does not take": {refuse: func(*queue.Message) error { return errNotSent }, events: 2, second: time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := &letterQueue{Fake: queuetest.NewFake(&queuetest.FakeOptions{MaxReceives: 2}), none: tt.none, refuse: tt.refuse}
			r, events := lettersWorker(t, q, &testApp{handle: func(context.Context, *queue.Message) queue.Result {
				return queue.Result{Status: 422, Instruction: queue.DeadLetterNow}
			}}, Options{VisibilityTimeout: time.Minute})
			id := r.send(1, "")[0]
			after(time.Hour)
			r.place(queuetest.FakeDead, 1)
			posts := r.app.byID()[id]
			if len(posts) != 2 || len(events()) != tt.events {
				t.Fatalf("%s: %d posts, events %+v", name, len(posts), events())
			}
			if again := posts[1].start.Sub(posts[0].end); again < tt.second || again > tt.second+3*time.Second {
				t.Errorf("%s: second attempt after %v, want about %v", name, again, tt.second)
			}
			r.stop()
		})
	}
}

func TestAppChoosesWhenAndWhetherAMessageComesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		app := &testApp{}
		app.handle = func(_ context.Context, m *queue.Message) queue.Result {
			switch {
			case m.Body == "body 1":
				return queue.Result{Outcome: queue.Done, Status: 500, Instruction: queue.Drop}
			case m.ReceiveCount == 1:
				return queue.Result{Status: 200, Instruction: queue.Retry, RetryAfter: 90 * time.Second}
			}
			return queue.Result{Outcome: queue.Done, Status: 200}
		}
		r := start(t, queuetest.NewFake(&queuetest.FakeOptions{FIFO: true}), app,
			&Options{FIFO: true, VisibilityTimeout: 20 * time.Second, ErrorVisibilityTimeout: ptr(time.Second)})
		ids := r.send(3, "g")
		after(80 * time.Second)
		if n := len(app.seen()); n != 1 {
			t.Errorf("%d posts before the time is over, want 1", n)
		}
		after(40 * time.Second)
		r.place(queuetest.FakeDeleted, 3)
		posts := app.byID()
		if again := posts[ids[0]]; len(again) != 2 || again[1].start.Sub(again[0].end) < 90*time.Second {
			t.Errorf("first message: %+v", again)
		}
		if len(posts[ids[1]]) != 1 {
			t.Errorf("the dropped message was posted %d times", len(posts[ids[1]]))
		}
		r.stop()
	})
}
