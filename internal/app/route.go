package app

import (
	"context"
	"slices"
	"time"

	"tendril/internal/delivery/deliver"
	"tendril/queue"
)

// exitWait is how long the exit of the process that explains a delivery without an answer is
// waited for.
const exitWait = 250 * time.Millisecond

// notReadyWait is how long messages wait for an app that is not ready before receiving stops:
// giving them back costs each a receive, and an app that exited over one is back in a moment.
const notReadyWait = 3 * time.Second

const badAddress = "invalid address of the app"

// Route delivers the messages of one queue: each to the replica of the app with the fewest
// deliveries, and quarantined ones to a replica that has nothing else.
type Route struct {
	balancer   *balancer
	detector   *detector
	quarantine *quarantine
	open       func(address string) (*deliver.Client, error)
	fifo       bool // the order within a message group counts
}

// Deliver delivers one message.
func (t *Route) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return t.deliver(ctx, []*queue.Message{m}, func(c *deliver.Client) []queue.Result {
		return []queue.Result{c.Deliver(ctx, m)}
	})[0]
}

// DeliverBatch delivers several messages at once to one replica. Quarantined ones are delivered alone.
func (t *Route) DeliverBatch(ctx context.Context, ms []*queue.Message) []queue.Result {
	quarantined := func(m *queue.Message) bool { return t.detector.isQuarantined(m.ID) }
	return deliver.InParts(ms, t.fifo, quarantined, func(part []*queue.Message) []queue.Result {
		return t.deliver(ctx, part, func(c *deliver.Client) []queue.Result { return c.DeliverBatch(ctx, part) })
	})
}

// deliver chooses a replica for messages, and posts them to it. A quarantined message comes alone.
func (t *Route) deliver(ctx context.Context, ms []*queue.Message, post func(*deliver.Client) []queue.Result,
) []queue.Result {
	if t.detector.isQuarantined(ms[0].ID) {
		return []queue.Result{t.quarantine.deliver(ctx, func(r *replica) queue.Result {
			return t.to(ctx, r, ms[:1], post, true)[0]
		})}
	}

	r, err := t.balancer.acquire(ctx, notReadyWait)
	if err != nil {
		return unreached(len(ms), errNoReplica.Error(), err)
	}
	defer r.release()
	return t.to(ctx, r, ms, post, false)
}

// to posts messages to a replica, and notes whether the replica survives them.
func (t *Route) to(ctx context.Context, r *replica, ms []*queue.Message, post func(*deliver.Client) []queue.Result,
	alone bool,
) []queue.Result {
	connection, err := r.connection(t)
	if err != nil {
		return unreached(len(ms), badAddress, err)
	}
	var exited <-chan struct{}
	for _, m := range ms {
		exited = r.begin(m.ID)
		defer r.end(m.ID)
	}
	results := post(connection)
	t.record(ctx, r, ms, results, exited, alone)
	return results
}

func unreached(n int, reason string, err error) []queue.Result {
	return slices.Repeat([]queue.Result{{Outcome: queue.Unreached, Reason: reason, Err: err}}, n)
}

// Probe returns nil when some replica takes messages. The supervisor finds that out, by the
// health check at the port that the replica really has.
func (t *Route) Probe(context.Context) error {
	if open, _ := t.balancer.isOpen(); !open {
		return errNoReplica
	}
	return nil
}

// record adds to the results of one delivery what is known of the replica, and records what it survived.
func (t *Route) record(ctx context.Context, r *replica, ms []*queue.Message, results []queue.Result,
	exited <-chan struct{}, alone bool) {
	ended, waited := false, false
	for i := range results {
		result := &results[i]
		if result.Unsent {
			continue // which says nothing of the app
		}
		result.Process = r.name()
		if result.Outcome == queue.Failed && result.Status == 0 && ctx.Err() == nil {
			if !waited {
				ended, waited = exitsSoon(exited), true
			}
			if ended {
				result.Reason = "the app ended while it worked on this message: " + result.Reason
				continue
			}
		}
		if result.Outcome != queue.Unreached {
			t.detector.survived(ms[i].ID, alone)
		}
	}
}

// exitsSoon reports whether a process exits by itself within exitWait.
func exitsSoon(exited <-chan struct{}) bool {
	select {
	case <-exited:
		return true
	case <-time.After(exitWait):
		return false
	}
}

// Close closes all connections; deliveries from now on open new ones.
func (t *Route) Close() {
	t.balancer.mu.Lock()
	replicas := slices.Clone(t.balancer.replicas)
	t.balancer.mu.Unlock()
	for _, r := range replicas {
		r.mu.Lock()
		r.disconnect(t)
		r.mu.Unlock()
	}
}
