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

type changeWatch struct {
	*queuetest.Fake

	mu       sync.Mutex
	underWay map[string]bool
	overlaps int
	changes  int
}

func (c *changeWatch) ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error {
	c.mark(changes, true)
	defer c.mark(changes, false)
	return c.Fake.ChangeVisibility(ctx, changes)
}

func (c *changeWatch) mark(changes []queue.VisibilityChange, begin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range changes {
		if begin && c.underWay[change.ReceiptHandle] {
			c.overlaps++
		}
		if c.underWay[change.ReceiptHandle] = begin; begin {
			c.changes++
		}
	}
}

type firstFails struct {
	work, latency time.Duration

	mu       sync.Mutex
	received map[string][]time.Time
}

func (a *firstFails) Probe(context.Context) error { return nil }

func (a *firstFails) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return a.DeliverBatch(ctx, []*queue.Message{m})[0]
}

func (a *firstFails) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	results := all(len(msgs), queue.Result{Outcome: queue.Done, Status: 200})
	first := false
	a.mu.Lock()
	for i, m := range msgs {
		if len(a.received[m.ID]) == 0 {
			results[i], first = queue.Result{Outcome: queue.Failed, Reason: "no answer"}, true
		}
		a.received[m.ID] = append(a.received[m.ID], time.Now().Add(-a.latency/2))
	}
	a.mu.Unlock()
	if first {
		sleep(ctx, a.work)
	}
	return results
}

func TestFailedMessageIsDueAsIfItHadNotBeenExtended(t *testing.T) {
	t.Parallel()
	type attempt struct{ visibility, work time.Duration }
	attempts := []attempt{{12 * time.Hour, 7 * time.Hour}, {11 * time.Hour, 10 * time.Hour},
		{7 * time.Hour, 11 * time.Hour}}
	for _, v := range []time.Duration{1, 5, 10, 12, 300} {
		for _, percent := range []time.Duration{1, 30, 49, 50, 51, 60, 99, 100, 101, 150, 200, 370} {
			attempts = append(attempts, attempt{v * time.Second, v * time.Second * percent / 100})
		}
	}
	for _, a := range attempts {
		for _, errorVisibility := range []time.Duration{-1, 0, time.Second, time.Minute} {
			for _, fifo := range []bool{false, true} {
				for _, size := range []int{1, 10} {
					if a.work > time.Hour && (fifo || size > 1) {
						continue
					}
					opts := &Options{FIFO: fifo, VisibilityTimeout: a.visibility, Batch: Batch{Size: size}}
					due := max(a.visibility, a.work)
					if errorVisibility >= 0 {
						opts.ErrorVisibilityTimeout, due = &errorVisibility, a.work+errorVisibility
					}
					name := fmt.Sprintf("visibility %v, failed after %v, error visibility %v, fifo %v, batches of %d",
						a.visibility, a.work, errorVisibility, fifo, size)
					synctest.Test(t, func(t *testing.T) { checkDue(t, name, a.work, due, opts) })
				}
			}
		}
	}
}

func checkDue(t *testing.T, name string, work, due time.Duration, opts *Options) {
	t.Helper()
	const latency = 40 * time.Millisecond
	fake := queuetest.NewFake(&queuetest.FakeOptions{FIFO: opts.FIFO, Latency: latency})
	watch := &changeWatch{Fake: fake, underWay: map[string]bool{}}
	app := &firstFails{work: work, latency: latency, received: map[string][]time.Time{}}
	receive, drain := context.WithCancel(t.Context())
	defer drain()
	ended := make(chan error, 1)
	w := New(watch, app, opts)
	go func() { ended <- w.Run(receive, t.Context()) }()
	after(5 * time.Second)
	ids := send(t, fake, 1, "a")
	ids = append(ids, send(t, fake, 1, "b")...)
	after(due + time.Minute)
	drain()
	if err := <-ended; err != nil {
		t.Errorf("%s: Run: %v", name, err)
	}
	for _, id := range ids {
		at := app.received[id]
		if len(at) != 2 {
			t.Errorf("%s: %d attempts", name, len(at))
			continue
		}
		if late := at[1].Sub(at[0]) - due; late < 0 || late > 4*latency+defaultDeleteLinger {
			t.Errorf("%s: the second receive came %v after it was due", name, late)
		}
	}
	if watch.overlaps > 0 || fake.StaleChanges() > 0 {
		t.Errorf("%s: %d changes overlapped, %d came too late", name, watch.overlaps, fake.StaleChanges())
	}
	if work < opts.VisibilityTimeout/4 && opts.ErrorVisibilityTimeout == nil && watch.changes > 0 {
		t.Errorf("%s: %d changes without need", name, watch.changes)
	}
}
