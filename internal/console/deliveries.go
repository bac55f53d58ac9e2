package console

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"tendril/api"
	"tendril/queue"
)

// Deliveries records recent deliveries. It is safe for concurrent use. The zero value keeps [api.DefaultDeliveries] and
// allocates at the first delivery.
type Deliveries struct {
	mu      sync.Mutex
	size    int // 0 for [api.DefaultDeliveries]
	ring    []api.Delivery
	next    int
	total   int
	arrived chan struct{} // closed at the next delivery; nil if no caller waits
	// problems is outdated if stale. Adding or replacing a failure sets stale.
	problems  []api.Problem
	stale     bool
	exchanges exchanges
}

// Record adds a delivery and wakes waiters. If the ring is full, it replaces the oldest delivery.
func (ds *Deliveries) Record(d api.Delivery) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.size = cmp.Or(ds.size, api.DefaultDeliveries)

	ds.stale = ds.stale || !d.Done()
	if len(ds.ring) < ds.size {
		ds.ring = append(ds.ring, d)
	} else {
		oldest := &ds.ring[ds.next]
		ds.stale = ds.stale || !oldest.Done()
		*oldest = d
	}
	ds.next = (ds.next + 1) % ds.size
	ds.total++

	if ds.arrived != nil {
		close(ds.arrived)
		ds.arrived = nil
	}
}

// Wait waits until the message's latest delivery counts as an attempt. When ctx is done, it returns a delivery that
// does not count, or ctx's error if there was no delivery.
func (ds *Deliveries) Wait(ctx context.Context, id string) (api.Delivery, error) {
	var latest *api.Delivery
	looked := 0
	for {
		ended := ctx.Err() // read first, so that deliveries recorded before the end are found
		ds.mu.Lock()
		// Any delivery of any message wakes all waiters, so only new deliveries are checked.
		latest = cmp.Or(ds.latestOf(id, ds.total-looked), latest)
		looked = ds.total
		arrived := ds.nextArrival()
		ds.mu.Unlock()

		switch {
		case latest != nil && (latest.Tried() || ended != nil):
			return *latest, nil
		case ended != nil:
			return api.Delivery{}, ended
		}

		select {
		case <-arrived:
		case <-ctx.Done():
		}
	}
}

func (ds *Deliveries) latestOf(id string, n int) *api.Delivery {
	for i := range min(n, len(ds.ring)) {
		if found := ds.newest(i); found.MessageID == id {
			return new(*found)
		}
	}
	return nil
}

func (ds *Deliveries) nextArrival() <-chan struct{} {
	if ds.arrived == nil {
		ds.arrived = make(chan struct{})
	}
	return ds.arrived
}

func (ds *Deliveries) newest(i int) *api.Delivery {
	return &ds.ring[(ds.next-1-i+len(ds.ring))%len(ds.ring)]
}

// Recent returns up to limit deliveries, newest first; all if limit is less than 1.
func (ds *Deliveries) Recent(limit int) []api.Delivery {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	n := len(ds.ring)
	if limit >= 1 {
		n = min(n, limit)
	}
	out := make([]api.Delivery, 0, n)
	for i := range n {
		out = append(out, *ds.newest(i))
	}
	return out
}

// Since returns the time since which all deliveries are kept, or the zero time if none has been evicted.
func (ds *Deliveries) Since() time.Time {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.total <= len(ds.ring) {
		return time.Time{}
	}
	return ds.newest(len(ds.ring) - 1).At
}

// Problems groups the recorded failures by queue and reason, latest failure first.
func (ds *Deliveries) Problems() []api.Problem {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.stale {
		ds.problems = ds.groupFailures()
		ds.stale = false
	}
	return slices.Clone(ds.problems)
}

// groupFailures does not copy the ring, because deliveries wait for the lock meanwhile.
func (ds *Deliveries) groupFailures() []api.Problem {
	type key struct{ queue, reason string }
	groups := map[key]*api.Problem{}
	for i := range ds.ring {
		d := ds.newest(i)
		if d.Done() {
			continue
		}
		k := key{d.Queue, queue.FailureGroup(d.Status, d.Reason, d.Answer)}
		p := groups[k]
		if p == nil {
			p = &api.Problem{Queue: k.queue, Reason: k.reason, Last: d.At, LastMessageID: d.MessageID}
			groups[k] = p
		}
		p.Count++
		p.First = d.At
	}

	problems := make([]api.Problem, 0, len(groups))
	for _, p := range groups {
		problems = append(problems, *p)
	}

	slices.SortFunc(problems, func(a, b api.Problem) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Reason, b.Reason))
	})

	return problems
}
