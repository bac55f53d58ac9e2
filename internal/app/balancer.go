package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// errNoReplica is the error of [balancer.acquire].
var errNoReplica = errors.New("no replica of the app is ready")

// balancer knows all replicas, and which of them may be given deliveries.
type balancer struct {
	// port is that of the settings, which the first replica gets; 0 means any. freePort
	// finds one for the others.
	port     int
	freePort func() (int, error)
	// changed is called when the answer to "may anything be delivered?" changes, with a
	// reason when not; nil for no calls. They come in order, and must not change the balancer.
	changed func(open bool, reason string)

	mu       sync.Mutex
	replicas []*replica
	open     bool
	news     chan struct{} // closed and replaced when something changes
	// calls keeps the order of calls of changed.
	calls sync.Mutex
}

func newBalancer(port int, freePort func() (int, error)) *balancer {
	return &balancer{port: port, freePort: freePort, news: make(chan struct{})}
}

// add makes a replica that is neither ready nor admitted. It has a port that no other
// replica has, also of those that do not listen yet, and the smallest free number.
func (b *balancer) add(v version) (*replica, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	port := b.port
	for port == 0 || slices.ContainsFunc(b.replicas, func(r *replica) bool { return r.port == port }) {
		var err error
		if port, err = b.freePort(); err != nil {
			return nil, fmt.Errorf("finding a port for another replica of the app: %w", err)
		}
	}
	number := 1
	for slices.ContainsFunc(b.replicas, func(r *replica) bool { return r.number == number }) {
		number++
	}
	r := newReplica(b, v, port, number)
	b.replicas = append(b.replicas, r)
	return r, nil
}

// setReady records whether a replica takes requests; reason says why not.
func (r *replica) setReady(ready bool, reason string) {
	if ready {
		r.wasReady.Store(true)
	}
	r.balancer.change(func() { r.ready, r.reason = ready, reason })
}

// isReady reports whether a replica takes requests, and why not.
func (r *replica) isReady() (ready bool, reason string) {
	r.balancer.mu.Lock()
	defer r.balancer.mu.Unlock()
	return r.ready, r.reason
}

// replace admits some replicas and retires others in one step, so that there is no
// moment without any.
func (b *balancer) replace(retired, admitted []*replica) {
	b.change(func() {
		for _, r := range admitted {
			r.admitted = true
		}
		for _, r := range retired {
			r.retire()
		}
	})
}

// retire needs the lock of the balancer.
func (r *replica) retire() {
	if r.retired {
		return
	}
	r.admitted, r.retired = false, true
	if r.inWork == 0 {
		close(r.idle)
	}
}

// drain retires a replica and waits until its deliveries have ended. When ctx is done before
// it returns how many there still are.
func (r *replica) drain(ctx context.Context) (inWork int) {
	r.balancer.change(r.retire)
	select {
	case <-r.idle:
	case <-ctx.Done():
	}
	r.balancer.mu.Lock()
	defer r.balancer.mu.Unlock()
	return r.inWork
}

// find returns the replicas for which is reports true, in the order of their start.
func (b *balancer) find(is func(*replica) bool) (found []*replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.replicas {
		if is(r) {
			found = append(found, r)
		}
	}
	return found
}

// remove removes a replica that is stopped.
func (b *balancer) remove(r *replica) {
	b.change(func() {
		r.retire()
		b.replicas = slices.DeleteFunc(b.replicas, func(other *replica) bool { return other == r })
	})
}

// acquire returns the admitted and ready replica with the fewest deliveries for one more;
// the caller calls release when that ended. It waits for one within limit, and until ctx is
// done; the error is [errNoReplica], or that of ctx.
func (b *balancer) acquire(ctx context.Context, limit time.Duration) (*replica, error) {
	var over <-chan time.Time
	for {
		b.mu.Lock()
		var best *replica
		for _, r := range b.replicas {
			if r.admitted && r.ready && (best == nil || r.inWork < best.inWork) {
				best = r
			}
		}
		if best != nil {
			best.inWork++
			b.mu.Unlock()
			return best, nil
		}
		news := b.news
		b.mu.Unlock()

		if over == nil {
			over = time.After(limit)
		}
		select {
		case <-news:
		case <-over:
			return nil, errNoReplica
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// release ends a delivery that acquire began.
func (r *replica) release() {
	r.balancer.mu.Lock()
	defer r.balancer.mu.Unlock()
	r.inWork--
	if r.retired && r.inWork == 0 {
		close(r.idle)
	}
}

// isOpen reports whether anything may be delivered now, and why not.
func (b *balancer) isOpen() (open bool, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state()
}

func (b *balancer) state() (open bool, reason string) {
	reason = "the app is not started"
	for _, r := range b.replicas {
		switch {
		case r.admitted && r.ready:
			return true, ""
		case r.admitted || len(b.replicas) == 1:
			reason = r.reason
		}
	}
	return false, reason
}

// change changes replicas and reports what follows from it.
func (b *balancer) change(do func()) {
	b.calls.Lock()
	defer b.calls.Unlock()
	b.mu.Lock()
	do()
	before := b.open
	open, reason := b.state()
	b.open = open
	close(b.news)
	b.news = make(chan struct{})
	b.mu.Unlock()
	if open != before && b.changed != nil {
		b.changed(open, reason)
	}
}
