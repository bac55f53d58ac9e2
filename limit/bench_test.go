package limit

import (
	"testing"
	"time"
)

// BenchmarkDelivery is one Allow and one Done, with all limits on and so many
// deliveries in work, first in, first out.
func BenchmarkDelivery(b *testing.B) {
	for _, bm := range []struct {
		name   string
		inWork int
	}{{"1", 1}, {"50", 50}, {"1000", 1000}} {
		b.Run(bm.name, func(b *testing.B) {
			l := New(&Options{Rate: 1e9, Concurrency: 2000, Adaptive: &Adaptive{Min: 2000}, Breaker: &Breaker{}})
			// The clock is the caller's: it does not count.
			const step = time.Microsecond
			now := time.Now()
			for range bm.inWork {
				l.Allow(now, 1)
				now = now.Add(step)
			}
			took := time.Duration(bm.inWork) * step
			b.ReportAllocs()
			for b.Loop() {
				l.Done(now, success, took)
				if ok, _, reason := l.Allow(now, 1); !ok {
					b.Fatal(reason)
				}
				now = now.Add(step)
			}
		})
	}
}

// BenchmarkRoom is what is asked before each receive.
func BenchmarkRoom(b *testing.B) {
	l := New(&Options{Rate: 1e9, Adaptive: &Adaptive{}, Breaker: &Breaker{}})
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		l.Room(now, time.Second)
	}
}
