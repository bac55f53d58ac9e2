package delivery

import (
	"context"
	"sync"
	"time"

	"tendril/autoscale"
)

// Tracker knows the deliveries in flight, and since when. The zero value is empty.
type Tracker struct {
	mu    sync.Mutex
	last  uint64
	since map[uint64]time.Time
}

// begin notes the begin of a delivery; the caller calls end with the result.
func (t *Tracker) begin(now time.Time) (id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since == nil {
		t.since = map[uint64]time.Time{}
	}
	t.last++
	t.since[t.last] = now
	return t.last
}

func (t *Tracker) end(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, id)
}

// Work returns how many deliveries run, and for how long the oldest.
func (t *Tracker) Work() autoscale.Work {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	w := autoscale.Work{InWork: len(t.since)}
	for _, since := range t.since {
		w.Longest = max(w.Longest, now.Sub(since))
	}
	return w
}

// track counts the deliveries of next.
func (t *Tracker) track(next Deliverer) Deliverer {
	return func(ctx context.Context, batch []*Message) {
		defer t.end(t.begin(time.Now()))
		next(ctx, batch)
	}
}
