package environment

import (
	"context"
	"sync"
	"time"

	"tendril/autoscale"
	"tendril/queue"
	"tendril/worker"
)

// hand knows the deliveries in work and since when they run. The zero value is
// empty.
type hand struct {
	mu    sync.Mutex
	last  uint64
	since map[uint64]time.Time
}

// take notes the begin of a delivery; the caller calls drop with what it got.
func (h *hand) take(now time.Time) (id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since == nil {
		h.since = map[uint64]time.Time{}
	}
	h.last++
	h.since[h.last] = now
	return h.last
}

func (h *hand) drop(id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.since, id)
}

// work tells how many deliveries run, and how long the oldest has.
func (h *hand) work() autoscale.Work {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	w := autoscale.Work{InWork: len(h.since)}
	for _, since := range h.since {
		w.Longest = max(w.Longest, now.Sub(since))
	}
	return w
}

// watch has the deliveries of a deliverer noted.
func (h *hand) watch(d worker.Deliverer) worker.Deliverer {
	one := watched{d, h}
	if batch, ok := d.(worker.BatchDeliverer); ok {
		return watchedBatch{one, batch}
	}
	return one
}

type watched struct {
	worker.Deliverer
	hand *hand
}

// Deliver hands over one message.
func (w watched) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	defer w.hand.drop(w.hand.take(time.Now()))
	return w.Deliverer.Deliver(ctx, m)
}

type watchedBatch struct {
	watched
	batch worker.BatchDeliverer
}

// DeliverBatch hands over several messages in one delivery.
func (w watchedBatch) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	defer w.hand.drop(w.hand.take(time.Now()))
	return w.batch.DeliverBatch(ctx, msgs)
}
