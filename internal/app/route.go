package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"tendril/internal/delivery/deliver"
	"tendril/queue"
)

// exitWait is how long a failed delivery waits for a process exit that would explain it.
const exitWait = 250 * time.Millisecond

// notReadyWait is how long deliveries wait for a ready replica: returning the messages would use up receives, and an
// app that crashed is usually ready again soon.
const notReadyWait = 3 * time.Second

const badAddress = "invalid address of the app"

// Route delivers one queue's messages. Quarantined messages go to a separate replica.
type Route struct {
	balancer   *balancer
	detector   *detector
	quarantine *quarantine
	open       func(address string) (*deliver.Client, error)
	queue      string
	fifo       bool
}

// Deliver delivers one message.
func (t *Route) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return t.deliver(ctx, []*queue.Message{m}, postOne)[0]
}

type postFunc func(c *deliver.Client, ctx context.Context, ms []*queue.Message) []queue.Result

func postOne(c *deliver.Client, ctx context.Context, ms []*queue.Message) []queue.Result {
	return []queue.Result{c.Deliver(ctx, ms[0])}
}

// DeliverBatch delivers quarantined messages alone and the others together.
func (t *Route) DeliverBatch(ctx context.Context, ms []*queue.Message) []queue.Result {
	quarantined := func(m *queue.Message) bool { return t.detector.isQuarantined(m.ID) }
	return deliver.InParts(ms, t.fifo, quarantined, func(part []*queue.Message) []queue.Result {
		return t.deliver(ctx, part, (*deliver.Client).DeliverBatch)
	})
}

// deliver delivers only the first message if that is quarantined.
func (t *Route) deliver(ctx context.Context, ms []*queue.Message, post postFunc) []queue.Result {
	if t.detector.isQuarantined(ms[0].ID) {
		return []queue.Result{t.quarantine.deliver(ctx, func(r *replica) queue.Result {
			return t.deliverTo(ctx, r, ms[:1], post, true)[0]
		})}
	}

	r, err := t.balancer.acquire(ctx, notReadyWait)
	if err != nil {
		return unreached(len(ms), errNoReplica.Error(), err)
	}
	defer r.release()
	return t.deliverTo(ctx, r, ms, post, false)
}

func (t *Route) deliverTo(ctx context.Context, r *replica, ms []*queue.Message, post postFunc,
	alone bool) []queue.Result {
	connection, err := r.connection(t)
	if err != nil {
		return unreached(len(ms), badAddress, err)
	}
	var exited <-chan struct{}
	for _, m := range ms {
		d := delivered{id: m.ID, queue: t.queue}
		if m.Run != nil {
			d.task = m.Run.Task
		}
		exited = r.begin(d)
		defer r.end(d)
	}
	results := post(connection, ctx, ms)
	t.recordOutcomes(ctx, r, ms, results, exited, alone)
	return results
}

func unreached(n int, reason string, err error) []queue.Result {
	return slices.Repeat([]queue.Result{{Outcome: queue.Unreached, Reason: reason, Err: err}}, n)
}

// Probe returns nil if any replica is ready. It sends no request, because the supervisor checks each replica.
func (t *Route) Probe(context.Context) error {
	if open, _ := t.balancer.isOpen(); !open {
		return errNoReplica
	}
	return nil
}

func (t *Route) recordOutcomes(ctx context.Context, r *replica, ms []*queue.Message, results []queue.Result,
	exited <-chan struct{}, alone bool) {
	replicaExits := sync.OnceValue(func() bool { return exitsSoon(exited) })
	for i := range results {
		result := &results[i]
		if result.Unsent || result.Outcome == queue.Postponed {
			continue // says nothing about the app
		}

		result.Process = r.name()
		noResponse := result.Outcome == queue.Failed && result.Status == 0 && ctx.Err() == nil
		switch {
		case noResponse && replicaExits():
			if alone {
				t.quarantine.stop() // otherwise, the next message would wait for the restart delay
			}
			result.Reason = "the app exited while processing this message: " + result.Reason
		case result.Outcome != queue.Unreached:
			t.detector.survived(ms[i].ID, alone)
		}
	}
}

func exitsSoon(exited <-chan struct{}) bool {
	select {
	case <-exited:
		return true
	case <-time.After(exitWait):
		return false
	}
}

// Close closes all connections; later deliveries open new ones.
func (t *Route) Close() {
	for _, r := range t.balancer.all() {
		r.disconnect(t)
	}
}
