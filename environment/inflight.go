package environment

import (
	"context"
	"sync"
	"time"

	"tendril/autoscale"
	"tendril/queue"
	"tendril/worker"
)

// inFlightTracker knows the deliveries that run, and since when. The zero value is
// empty.
type inFlightTracker struct {
	mu    sync.Mutex
	last  uint64
	since map[uint64]time.Time
}

// begin notes the begin of a delivery; the caller calls end with the result.
func (t *inFlightTracker) begin(now time.Time) (id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since == nil {
		t.since = map[uint64]time.Time{}
	}
	t.last++
	t.since[t.last] = now
	return t.last
}

func (t *inFlightTracker) end(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, id)
}

// work tells how many deliveries run, and how long the oldest has.
func (t *inFlightTracker) work() autoscale.Work {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	w := autoscale.Work{InWork: len(t.since)}
	for _, since := range t.since {
		w.Longest = max(w.Longest, now.Sub(since))
	}
	return w
}

// track returns the deliverer with its deliveries noted.
func (t *inFlightTracker) track(d worker.Deliverer) worker.Deliverer {
	one := tracked{d, t}
	if batch, ok := d.(worker.BatchDeliverer); ok {
		return trackedBatch{one, batch}
	}
	return one
}

type tracked struct {
	worker.Deliverer
	tracker *inFlightTracker
}

// Deliver hands over one message.
func (w tracked) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	defer w.tracker.end(w.tracker.begin(time.Now()))
	return w.Deliverer.Deliver(ctx, m)
}

type trackedBatch struct {
	tracked
	batch worker.BatchDeliverer
}

// DeliverBatch hands over several messages in one delivery.
func (w trackedBatch) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	defer w.tracker.end(w.tracker.begin(time.Now()))
	return w.batch.DeliverBatch(ctx, msgs)
}
