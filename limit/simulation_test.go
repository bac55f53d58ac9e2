package limit

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// server is an app that works on so many requests at once, for about work each;
// the others queue up inside of it, as they do in most.
type server struct {
	places chan struct{}
	work   time.Duration
	mu     sync.Mutex
	random *rand.Rand
}

func newServer(places int, work time.Duration) *server {
	return &server{places: make(chan struct{}, places), work: work, random: rand.New(rand.NewPCG(1, 2))}
}

func (s *server) serve() {
	s.places <- struct{}{}
	s.mu.Lock()
	d := time.Duration(float64(s.work) * (0.8 + 0.4*s.random.Float64()))
	s.mu.Unlock()
	time.Sleep(d)
	<-s.places
}

// drive has 100 slots deliver to s through l until end and returns how many
// deliveries there were.
func drive(l *Limiter, s *server, end time.Time) (served int) {
	var mu sync.Mutex
	var slots sync.WaitGroup
	done := sync.NewCond(&mu)
	for range 100 {
		slots.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for time.Now().Before(end) {
				if ok, _, _ := l.Allow(time.Now(), 1); !ok {
					done.Wait()
					continue
				}
				mu.Unlock()
				begun := time.Now()
				s.serve()
				mu.Lock()
				served++
				l.Done(time.Now(), success, time.Since(begun))
				done.Signal()
			}
			done.Broadcast()
		})
	}
	slots.Wait()
	return served
}

// TestAdaptiveLimitSettlesNearTheApp holds the figures that doc.go promises: an
// app with k places never stands before all 100 slots, and loses little of what it
// could do.
func TestAdaptiveLimitSettlesNearTheApp(t *testing.T) {
	t.Parallel()
	for _, k := range []int{5, 10, 30} {
		synctest.Test(t, func(t *testing.T) {
			const work, length = 100 * time.Millisecond, 20 * time.Minute
			l := New(&Options{Concurrency: 100, Adaptive: &Adaptive{}})
			begun := time.Now()
			var sum, n, most int
			var watch sync.WaitGroup
			watch.Go(func() {
				time.Sleep(length / 4)
				for time.Since(begun) < length {
					limit := l.Status().Limit
					sum, n, most = sum+limit, n+1, max(most, limit)
					time.Sleep(time.Second)
				}
			})
			served := drive(l, newServer(k, work), begun.Add(length))
			watch.Wait()
			mean := float64(sum) / float64(n)
			share := float64(served) * work.Seconds() / length.Seconds() / float64(k)
			t.Logf("an app with %d places: limit %.1f on average, %d at most; %.0f %% of its best", k, mean, most, 100*share)
			if mean < 0.7*float64(k) || mean > float64(k)+10 || most > k+20 || share < 0.75 {
				t.Errorf("an app with %d places: limit %.1f on average, %d at most; %.0f %% of its best", k, mean, most, 100*share)
			}
		})
	}
}
