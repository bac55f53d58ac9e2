package environment

import (
	"context"
	"sync"
	"time"

	"tendril/deliver"
	"tendril/queue"
)

// deathWait is how long after a delivery without an answer the end of the
// process is awaited that explains it.
const deathWait = 250 * time.Millisecond

// briefly is how long an app that is not ready is waited for, with what is in
// hand, before receiving stops: giving messages back costs each a receive, and an
// app that ended over a message is back in a moment.
const briefly = 3 * time.Second

// route hands one queue's messages to whichever copy of the app has the least to
// do, and those under suspicion to a copy that has nothing else.
type route struct {
	e    *Environment
	open func(address string) (*deliver.HTTP, error)

	mu   sync.RWMutex
	ways map[string]*deliver.HTTP // by address
}

// Deliver hands over one message.
func (r *route) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	if r.e.finder.Quarantined(m.ID) {
		return r.e.lone.deliver(ctx, r, m)
	}
	member, err := r.e.router.AcquireWithin(ctx, briefly)
	if err != nil {
		return queue.Result{Outcome: queue.Unreached, Reason: errNoCopy.Error(), Err: err}
	}
	defer member.Release()
	result, _ := r.to(ctx, r.e.copyAt(member.Address), m, false)
	return result
}

// Probe returns nil when some copy takes messages. The supervisor finds that out, by
// the health check at the port that the copy really has.
func (r *route) Probe(context.Context) error {
	if open, _ := r.e.router.Open(); !open {
		return errNoCopy
	}
	return nil
}

// to hands a message to a copy, and tells whether the copy died meanwhile.
func (r *route) to(ctx context.Context, c *appCopy, m *queue.Message, alone bool) (result queue.Result, died bool) {
	if c == nil {
		return queue.Result{Outcome: queue.Unreached, Reason: errNoCopy.Error()}, false
	}
	way, err := r.way(c.address())
	if err != nil {
		return queue.Result{Outcome: queue.Unreached, Reason: "the app's address is wrong", Err: err}, false
	}
	death := c.begin(m.ID)
	defer c.end(m.ID)
	result = way.Deliver(ctx, m)
	if result.Unsent {
		return result, false // which says nothing of the app
	}
	if result.Outcome == queue.Failed && result.Status == 0 && ctx.Err() == nil {
		select {
		case <-death:
			result.Reason = "the app ended while it worked on this message: " + result.Reason
			return result, true
		case <-time.After(deathWait):
		}
	}
	if result.Outcome != queue.Unreached {
		r.e.finder.Survived(m.ID, alone)
	}
	return result, false
}

// way returns the connections to an address.
func (r *route) way(address string) (*deliver.HTTP, error) {
	r.mu.RLock()
	way := r.ways[address]
	r.mu.RUnlock()
	if way != nil {
		return way, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if way = r.ways[address]; way != nil {
		return way, nil
	}
	way, err := r.open(address)
	if err == nil {
		r.ways[address] = way
	}
	return way, err
}

// drop closes the connections to an address.
func (r *route) drop(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if way := r.ways[address]; way != nil {
		way.Close()
		delete(r.ways, address)
	}
}

// close drops all connections, so that deliveries from now on open new ones.
func (r *route) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, way := range r.ways {
		way.Close()
	}
	clear(r.ways)
}
