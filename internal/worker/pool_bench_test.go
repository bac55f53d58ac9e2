package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

func BenchmarkPool(b *testing.B) {
	for _, bm := range []struct {
		queues, weight int
	}{{1, 0}, {1, 1}, {3, 0}, {3, 1}, {10, 1}} {
		b.Run(fmt.Sprintf("%d queues, weight %d", bm.queues, bm.weight), func(b *testing.B) {
			b.ReportAllocs()
			benchPool(b, bm.queues, func() []*Options {
				p := NewPool(nil)
				var opts []*Options
				for range bm.queues {
					opts = append(opts, &Options{Pool: p, Weight: bm.weight})
				}
				return opts
			}())
		})
	}
	b.Run("no pool", func(b *testing.B) {
		b.ReportAllocs()
		benchPool(b, 1, []*Options{{}})
	})
}

func benchPool(b *testing.B, n int, opts []*Options) {
	ctx, cancel := context.WithCancel(context.Background())
	var queues []*endless
	var workers []*Worker
	for i, o := range opts {
		o.Events = &Events{Settled: func(Settled) {}}
		queues = append(queues, newEndless(max((b.N+n-1-i)/n, 1)))
		workers = append(workers, New(queues[i], instant{}, o))
	}
	b.ResetTimer()
	before := processorTime(b)
	var ended sync.WaitGroup
	for _, w := range workers {
		ended.Go(func() {
			if err := w.Run(ctx, context.Background()); err != nil {
				b.Error(err)
			}
		})
	}
	for _, q := range queues {
		<-q.over
	}
	b.StopTimer()
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
	cancel()
	ended.Wait()
	var calls int64
	for _, q := range queues {
		calls += q.calls.Load()
	}
	b.ReportMetric(float64(calls)/float64(b.N), "calls/op")
}
