package limit

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type server struct {
	slots  chan struct{}
	work   time.Duration
	mu     sync.Mutex
	random *rand.Rand
}

func newServer(slots int, work time.Duration) *server {
	return &server{slots: make(chan struct{}, slots), work: work, random: rand.New(rand.NewPCG(1, 2))}
}

func (s *server) serve() {
	s.slots <- struct{}{}
	s.mu.Lock()
	d := time.Duration(float64(s.work) * (0.8 + 0.4*s.random.Float64()))
	s.mu.Unlock()
	time.Sleep(d)
	<-s.slots
}

func drive(l *Limiter, s *server, end time.Time) (served int) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	done := sync.NewCond(&mu)
	for range 100 {
		workers.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for time.Now().Before(end) {
				permit, _, _ := l.Acquire(time.Now(), 1)
				if permit == 0 {
					done.Wait()
					continue
				}
				mu.Unlock()
				s.serve()
				mu.Lock()
				served++
				l.Release(permit, time.Now(), success)
				done.Signal()
			}
			done.Broadcast()
		})
	}
	workers.Wait()
	return served
}

// The table in doc.go contains these figures.
func TestAdaptiveLimitSettlesNearTheCapacityOfTheApp(t *testing.T) {
	t.Parallel()
	for _, k := range []int{5, 10, 30} {
		synctest.Test(t, func(t *testing.T) {
			const work, length = 100 * time.Millisecond, 20 * time.Minute
			l := New(&Options{Concurrency: 100, Adaptive: true})
			start := time.Now()
			var sum, n, most int
			var sampler sync.WaitGroup
			sampler.Go(func() {
				time.Sleep(length / 4)
				for time.Since(start) < length {
					limit := l.Status().Limit
					sum, n, most = sum+limit, n+1, max(most, limit)
					time.Sleep(time.Second)
				}
			})
			served := drive(l, newServer(k, work), start.Add(length))
			sampler.Wait()
			mean := float64(sum) / float64(n)
			throughput := float64(served) * work.Seconds() / length.Seconds() / float64(k)
			const format = "an app with %d slots: mean limit %.1f, highest %d; %.0f %% of its maximum throughput"
			t.Logf(format, k, mean, most, 100*throughput)
			if mean < 0.7*float64(k) || mean > float64(k)+10 || most > k+20 || throughput < 0.75 {
				t.Errorf(format, k, mean, most, 100*throughput)
			}
		})
	}
}
