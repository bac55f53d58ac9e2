package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tendril/internal/supervisor"
)

var errNoReplica = errors.New("no replica of the app is ready")

type balancer struct {
	// port is for the first replica, and for later ones while it is free; 0 means any free port.
	port     int
	freePort func() (int, error)
	// changed is called, in order, when deliveries become possible or impossible. It must not change the balancer.
	changed func(open bool, reason string)

	mu       sync.Mutex
	replicas []*replica
	open     bool
	updated  chan struct{} // closed and replaced on each change
	changing sync.Mutex    // keeps calls of changed in order
}

func newBalancer(port int, freePort func() (int, error)) *balancer {
	return &balancer{port: port, freePort: freePort, updated: make(chan struct{})}
}

func (b *balancer) add(v version) (*replica, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	port := b.port
	for port == 0 || b.isPortTaken(port) {
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

// b.mu must be held.
func (b *balancer) isPortTaken(port int) bool {
	if slices.ContainsFunc(b.replicas, func(r *replica) bool { return r.port == port }) {
		return true
	}
	return port == b.port && len(b.replicas) > 0 && supervisor.PortTaken(port)
}

func (r *replica) setReady(ready bool, reason string) {
	if ready {
		r.wasReady.Store(true)
	}
	r.balancer.change(func() { r.ready, r.reason = ready, reason })
}

func (r *replica) isReady() (ready bool, reason string) {
	r.balancer.mu.Lock()
	defer r.balancer.mu.Unlock()
	return r.ready, r.reason
}

// replace admits and retires in one step, so that deliveries remain possible.
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

// The balancer's mu must be held.
func (r *replica) retire() {
	if r.retired {
		return
	}
	r.admitted, r.retired = false, true
	if r.inWork == 0 {
		close(r.idle)
	}
}

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

func (b *balancer) all() []*replica {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.replicas)
}

func (b *balancer) replicasWhere(matches func(*replica) bool) (matching []*replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.replicas {
		if matches(r) {
			matching = append(matching, r)
		}
	}
	return matching
}

func (b *balancer) remove(r *replica) {
	b.change(func() {
		r.retire()
		b.replicas = slices.DeleteFunc(b.replicas, func(other *replica) bool { return other == r })
	})
}

// acquire returns the admitted and ready replica with the fewest deliveries; the caller must release it. If there is
// none within limit, the error is [errNoReplica].
func (b *balancer) acquire(ctx context.Context, limit time.Duration) (*replica, error) {
	var timeout <-chan time.Time
	for {
		r, updated := b.leastBusy()
		if r != nil {
			return r, nil
		}
		if timeout == nil {
			timeout = time.After(limit)
		}
		select {
		case <-updated:
		case <-timeout:
			return nil, errNoReplica
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *balancer) leastBusy() (best *replica, updated <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.replicas {
		if r.admitted && r.ready && (best == nil || r.inWork < best.inWork) {
			best = r
		}
	}
	if best == nil {
		return nil, b.updated
	}
	best.inWork++
	return best, nil
}

func (r *replica) release() {
	r.balancer.mu.Lock()
	defer r.balancer.mu.Unlock()
	r.inWork--
	if r.retired && r.inWork == 0 {
		close(r.idle)
	}
}

func (b *balancer) isOpen() (open bool, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state()
}

func (b *balancer) state() (open bool, reason string) {
	reason = "the app has not started"
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

func (b *balancer) change(do func()) {
	b.changing.Lock()
	defer b.changing.Unlock()

	b.mu.Lock()
	do()
	wasOpen := b.open
	open, reason := b.state()
	b.open = open
	close(b.updated)
	b.updated = make(chan struct{})
	b.mu.Unlock()

	if open != wasOpen && b.changed != nil {
		b.changed(open, reason)
	}
}
