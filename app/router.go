package app

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrNone is what [Router.Acquire] returns when no member may be given work.
var ErrNone = errors.New("no copy of the app is ready")

// Router knows the members, and which of them may be given work. Make it with
// [NewRouter]; its methods are safe for concurrent use.
type Router struct {
	changed func(open bool, reason string)

	mu      sync.Mutex
	members []*Member
	open    bool
	news    chan struct{} // closed and replaced when something changes
	// calls keeps the order of calls of changed.
	calls sync.Mutex
}

// NewRouter returns a router without members. changed, which may be nil, is
// called when the answer to "may anything be delivered?" changes, with a reason
// when not; it is called in order, and must not call the router.
func NewRouter(changed func(open bool, reason string)) *Router {
	return &Router{changed: changed, news: make(chan struct{})}
}

// Member is one copy of the app, as the router sees it.
type Member struct {
	// Address is where it listens: a URL, or whatever the caller delivers by.
	Address string

	router                   *Router
	admitted, ready, retired bool
	reason                   string
	inWork                   int
	idle                     chan struct{} // closed when retired and idle
}

// Add makes a member that is neither ready nor admitted.
func (r *Router) Add(address string) *Member {
	m := &Member{Address: address, router: r, reason: "starting", idle: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = append(r.members, m)
	return m
}

// SetReady says whether the member takes requests; reason says why not.
func (m *Member) SetReady(ready bool, reason string) {
	m.router.change(func() { m.ready, m.reason = ready, reason })
}

// Ready reports whether the member takes requests.
func (m *Member) Ready() bool {
	m.router.mu.Lock()
	defer m.router.mu.Unlock()
	return m.ready
}

// Admit lets members have work from now on, all at once.
func (r *Router) Admit(members ...*Member) {
	r.change(func() {
		for _, m := range members {
			m.admitted = true
		}
	})
}

// Switch admits some members and retires others in one step, so that there is
// no moment without any.
func (r *Router) Switch(admit, retire []*Member) {
	r.change(func() {
		for _, m := range admit {
			m.admitted = true
		}
		for _, m := range retire {
			m.retire()
		}
	})
}

// Retire takes work away from a member for good and waits until what it has in
// work is finished, or ctx is done.
func (m *Member) Retire(ctx context.Context) error {
	m.router.change(m.retire)
	return m.Drained(ctx)
}

// Drained waits until a retired member has nothing in work, or ctx is done.
func (m *Member) Drained(ctx context.Context) error {
	select {
	case <-m.idle:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-m.idle: // both at once
		return nil
	default:
		return ctx.Err()
	}
}

// retire needs the lock.
func (m *Member) retire() {
	if m.retired {
		return
	}
	m.retired, m.admitted = true, false
	if m.inWork == 0 {
		close(m.idle)
	}
}

// Remove forgets a member.
func (r *Router) Remove(m *Member) {
	r.change(func() {
		m.retire()
		for i, other := range r.members {
			if other == m {
				r.members = append(r.members[:i:i], r.members[i+1:]...)
				return
			}
		}
	})
}

// Acquire picks the ready member with the least in work for one delivery; the
// caller calls [Member.Release] when it ended. The error is [ErrNone].
func (r *Router) Acquire() (*Member, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *Member
	for _, m := range r.members {
		if m.admitted && m.ready && (best == nil || m.inWork < best.inWork) {
			best = m
		}
	}
	if best == nil {
		return nil, ErrNone
	}
	best.inWork++
	return best, nil
}

// AcquireWithin is Acquire, but waits for a member to become ready, until ctx is
// done or the time is over.
func (r *Router) AcquireWithin(ctx context.Context, limit time.Duration) (*Member, error) {
	m, err := r.Acquire()
	if err == nil {
		return m, nil
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		r.mu.Lock()
		news := r.news
		r.mu.Unlock()
		if m, err = r.Acquire(); err == nil {
			return m, nil
		}
		select {
		case <-news:
		case <-over.C:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Release ends a delivery that [Router.Acquire] began.
func (m *Member) Release() {
	m.router.mu.Lock()
	defer m.router.mu.Unlock()
	m.inWork--
	if m.retired && m.inWork == 0 {
		close(m.idle)
	}
}

// InWork returns how many deliveries the member has.
func (m *Member) InWork() int {
	m.router.mu.Lock()
	defer m.router.mu.Unlock()
	return m.inWork
}

// Open reports whether anything may be delivered now, and if not, why.
func (r *Router) Open() (bool, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state()
}

func (r *Router) state() (open bool, reason string) {
	reason = "the app is not started"
	for _, m := range r.members {
		switch {
		case m.admitted && m.ready:
			return true, ""
		case m.admitted || len(r.members) == 1:
			reason = m.reason
		}
	}
	return false, reason
}

// change does something with the members and tells what follows from it.
func (r *Router) change(do func()) {
	r.calls.Lock()
	defer r.calls.Unlock()
	r.mu.Lock()
	do()
	open, reason := r.state()
	before := r.open
	r.open = open
	close(r.news)
	r.news = make(chan struct{})
	r.mu.Unlock()
	if open != before && r.changed != nil {
		r.changed(open, reason)
	}
}
