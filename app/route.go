package app

import (
	"context"
	"slices"
	"time"

	"tendril/deliver"
	"tendril/queue"
)

// exitWait is how long the exit of the process that explains a delivery without an answer is
// waited for.
const exitWait = 250 * time.Millisecond

// notReadyWait is how long messages wait for an app that is not ready before receiving stops:
// giving them back costs each a receive, and an app that exited over one is back in a moment.
const notReadyWait = 3 * time.Second

// Route delivers the messages of one queue: each to the replica of the app with the fewest
// deliveries, and quarantined ones to a replica that has nothing else.
type Route struct {
	balancer   *balancer
	detector   *detector
	quarantine *quarantine
	open       func(address string) (*deliver.Client, error)
}

// Deliver delivers one message.
func (t *Route) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	if t.detector.isQuarantined(m.ID) {
		return t.quarantine.deliver(ctx, func(r *replica) queue.Result { return t.to(ctx, r, m, true) })
	}
	r, err := t.balancer.acquire(ctx, notReadyWait)
	if err != nil {
		return queue.Result{Outcome: queue.Unreached, Reason: errNoReplica.Error(), Err: err}
	}
	defer r.release()
	return t.to(ctx, r, m, false)
}

// Probe returns nil when some replica takes messages. The supervisor finds that out, by the
// health check at the port that the replica really has.
func (t *Route) Probe(context.Context) error {
	if open, _ := t.balancer.isOpen(); !open {
		return errNoReplica
	}
	return nil
}

// to delivers a message to a replica, and notes whether the replica survives it.
func (t *Route) to(ctx context.Context, r *replica, m *queue.Message, alone bool) queue.Result {
	connection, err := r.connection(t)
	if err != nil {
		return queue.Result{Outcome: queue.Unreached, Reason: "invalid address of the app", Err: err}
	}
	exited := r.begin(m.ID)
	defer r.end(m.ID)
	result := connection.Deliver(ctx, m)
	if result.Unsent {
		return result // which says nothing of the app
	}
	result.Process = r.name()
	if result.Outcome == queue.Failed && result.Status == 0 && ctx.Err() == nil {
		select {
		case <-exited:
			result.Reason = "the app ended while it worked on this message: " + result.Reason
			return result
		case <-time.After(exitWait):
		}
	}
	if result.Outcome != queue.Unreached {
		t.detector.survived(m.ID, alone)
	}
	return result
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
