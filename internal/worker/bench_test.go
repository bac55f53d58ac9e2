package worker

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tendril/queue"
	"tendril/queuetest"
)

type endless struct {
	left, deleted atomic.Int64
	calls         atomic.Int64
	ids           []string
	over          chan struct{}
	total         int64
	once          sync.Once
}

func newEndless(n int) *endless {
	q := &endless{over: make(chan struct{}), total: int64(n), ids: make([]string, n)}
	for i := range q.ids {
		q.ids[i] = "3f0e8b1c-0000-0000-0000-" + strconv.Itoa(i)
	}
	q.left.Store(int64(n))
	return q
}

func (q *endless) Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	q.calls.Add(1)
	from := q.left.Add(-int64(req.Max))
	n := min(int64(req.Max), from+int64(req.Max))
	if n <= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	msgs := make([]queue.Message, n)
	now := time.Now()
	for i := range msgs {
		id := q.ids[from+int64(req.Max)-1-int64(i)]
		msgs[i] = queue.Message{ID: id, ReceiptHandle: id, Body: "{}", ReceiveCount: 1, SentAt: now, FirstReceivedAt: now}
	}
	return msgs, nil
}

func (q *endless) Delete(_ context.Context, receipts []string) []error {
	q.calls.Add(1)
	if q.deleted.Add(int64(len(receipts))) >= q.total {
		q.once.Do(func() { close(q.over) })
	}
	return nil
}

func (q *endless) Expire(ctx context.Context, receipts []string) []error {
	return q.Delete(ctx, receipts)
}

func (q *endless) ChangeVisibility(context.Context, []queue.VisibilityChange) []error {
	q.calls.Add(1)
	return nil
}

type instant struct{}

func (instant) Deliver(context.Context, *queue.Message) queue.Result {
	return queue.Result{Outcome: queue.Done, Status: 200}
}
func (instant) Probe(context.Context) error { return nil }

// CPU time varies less than elapsed time on a busy machine.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkOverhead(b *testing.B) {
	for _, bm := range []struct {
		name   string
		slots  int
		linger time.Duration
	}{{"1 slot", 1, 0}, {"10 slots", 10, 0}, {"50 slots", 50, 0}, {"50 slots, no linger", 50, -1}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			q := newEndless(b.N)
			w := New(q, instant{},
				&Options{Concurrency: bm.slots, DeleteLinger: bm.linger, Events: &Events{Settled: func(Settled) {}}})
			ctx, cancel := context.WithCancel(context.Background())
			b.ResetTimer()
			before := processorTime(b)
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx, context.Background()) }()
			<-q.over
			b.StopTimer()
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
			cancel()
			if err := <-ended; err != nil {
				b.Error(err)
			}
			b.ReportMetric(float64(q.calls.Load())/float64(b.N), "calls/op")
		})
	}
}

func BenchmarkWithFake(b *testing.B) {
	fake := queuetest.NewFake(nil)
	for sent := 0; sent < b.N; sent += queue.MaxBatch {
		if _, err := fake.Send(context.Background(), make([]queue.Outgoing, min(queue.MaxBatch, b.N-sent))); err != nil {
			b.Fatal(err)
		}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	over := make(chan struct{})
	w := New(fake, instant{}, &Options{Events: &Events{Deleted: func(d Deleted) {
		if left.Add(-int64(d.Messages)) == 0 {
			close(over)
		}
	}}})
	ctx, cancel := context.WithCancel(context.Background())
	b.ReportAllocs()
	b.ResetTimer()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, context.Background()) }()
	<-over
	b.StopTimer()
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
