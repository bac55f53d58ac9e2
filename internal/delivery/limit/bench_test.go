package limit

import (
	"testing"
	"time"
)

// BenchmarkDelivery uses all limits and releases the oldest delivery first.
func BenchmarkDelivery(b *testing.B) {
	for _, bm := range []struct {
		name   string
		inWork int
	}{{"1", 1}, {"50", 50}, {"1000", 1000}} {
		b.Run(bm.name, func(b *testing.B) {
			l := New(&Options{Rate: 1e9, Concurrency: 2000, Breaker: &Breaker{}})
			l.adaptive = newAdaptive(2000, 2000, 2000, l.limitChanged)
			const step = time.Microsecond
			now := time.Now()
			inWork := make([]uint64, bm.inWork)
			for i := range inWork {
				inWork[i], _, _ = l.Acquire(now, 1)
				now = now.Add(step)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % len(inWork) {
				l.Release(inWork[i], now, success)
				var reason string
				if inWork[i], _, reason = l.Acquire(now, 1); reason != "" {
					b.Fatal(reason)
				}
				now = now.Add(step)
			}
		})
	}
}

func BenchmarkRoom(b *testing.B) {
	l := New(&Options{Rate: 1e9, Adaptive: true, Breaker: &Breaker{}})
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		l.Room(now, time.Second)
	}
}
