package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tendril/queue"
)

// Store stores leases. Its methods must see the latest write, return when their context ends, and be safe for
// concurrent use. After an error, a swap may have been applied or may still be applied.
type Store interface {
	// Read returns the zero value for a missing lease.
	Read(ctx context.Context, name string) (queue.Lease, error)
	// Swap stores next if the stored Version is old.Version, where "" means no lease. It returns the stored lease, and
	// whether that is next, even from an earlier call, so that callers can repeat a call without a response. A next
	// without a Version is an error.
	Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease, err error)
}

// Elector takes part in leader elections. All methods except Run are safe for concurrent use.
type Elector struct {
	opts   Options
	gate   *gate
	events *dispatcher
	wake   chan struct{}

	// Only Run uses lease and following.
	lease     holder
	following Following

	started atomic.Bool

	mu                        sync.Mutex
	status                    Status
	seenAt, expiry, failingAt time.Time
}

// New returns an elector, started by [Elector.Run]. It fails without a store or a name, or if the durations leave no
// time for a renewal.
func New(store Store, opts Options) (*Elector, error) {
	if store == nil {
		return nil, errors.New("an elector needs a lease store")
	}

	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}

	e := &Elector{
		opts:   opts,
		events: newDispatcher(),
		wake:   make(chan struct{}, 1),
	}
	e.lease = holder{store: store, core: newCore(&e.opts), onFailure: e.reportFailure}
	e.gate = &gate{standstill: opts.Standstill, wall: opts.Wall, began: e.reportElected, lost: e.reportLost,
		changed: make(chan struct{})}
	return e, nil
}

// Term returns the term in which this instance leads. ok is false if it may not be the leader: outside the trust
// window, which ends Margin before the lease expires, or after a suspension. Once ok is false for a term, it is never
// true again.
//
// Callers must call Term immediately before each effect and pass the term along, so that the receiver can reject an
// outdated term. Nothing else protects against a suspension in between.
func (e *Elector) Term() (term int64, ok bool) { return e.gate.currentTerm() }

// Changed returns a channel that is closed when ok becomes true or, at most [Options].Standstill late, false. Call it
// before Term to avoid missing a change.
func (e *Elector) Changed() <-chan struct{} { return e.gate.changes() }

// Run takes part in the election until ctx ends, and then releases the lease. The release and the wait for a blocked
// listener take up to CallTimeout each. A second call of Run is an error.
func (e *Elector) Run(ctx context.Context) error {
	if e.started.Swap(true) {
		return fmt.Errorf("the elector of lease %s has already run: create a new one", e.opts.Name)
	}
	go e.events.run()
	defer e.events.stop(e.opts.CallTimeout)
	ticking, stop := context.WithCancel(context.Background())
	defer stop()
	e.gate.tick()
	go e.tick(ticking)

	for ctx.Err() == nil {
		e.round(ctx)
	}
	e.gate.stop()
	e.release(context.WithoutCancel(ctx))
	return nil
}

func (e *Elector) tick(ctx context.Context) {
	ticker := time.Tick(e.opts.Standstill)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker:
			e.gate.tick()
		}
	}
}

func (e *Elector) round(ctx context.Context) {
	e.dropClosedTerm() // the gate closes on its own if the lease is not renewed in time
	next := e.lease.core.decide(time.Now())
	switch next.do {
	case wait:
		waitUntil(ctx, next.until, e.wake)
	case read:
		_ = e.lease.read(ctx) // the next round tries again
	case swap:
		e.swap(ctx, next.attempt)
	}
	e.publish()
}

func (e *Elector) dropClosedTerm() {
	core := &e.lease.core
	if term, _ := e.gate.currentTerm(); core.term != 0 && core.term != term {
		core.lose()
	}
}

func (e *Elector) swap(ctx context.Context, a *attempt) {
	if a.wall.IsZero() {
		a.wall = e.opts.Wall()
	}

	won, current, err := e.lease.swap(ctx, a)
	e.dropClosedTerm()
	if err != nil {
		e.lease.recordFailure(ctx, err)
		return
	}

	leads := e.lease.core.swapped(time.Now(), a, won, current)
	switch {
	case leads && !e.gate.open(a, e.lease.core.trusted):
		e.lease.core.lose()
		e.lease.recordFailure(ctx, errors.New("the process or the machine was suspended while the store responded"))
	case !leads:
		e.gate.close(e.whyLost(current))
	}
}

func (e *Elector) whyLost(current queue.Lease) string {
	switch {
	case e.lease.core.isOwn(current):
		return "the lease was not renewed in time"
	case current.Version == "":
		return "the lease was removed from the store"
	}
	return fmt.Sprintf("the lease is held by %s, term %d", current.Owner, current.Term)
}

func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.CallTimeout)
	defer cancel()
	_, _ = e.lease.release(ctx) // otherwise, the lease expires
	e.lease.core.lose()
	e.publish()
}

func (e *Elector) reportFailure(f Failure) {
	e.events.dispatch(func() { call(e.opts.Events.Failed, f) })
}

func (e *Elector) reportElected(term int64) {
	e.events.dispatch(func() { call(e.opts.Events.Elected, Elected{Name: e.opts.Name, Term: term}) })
}

func (e *Elector) reportLost(term int64, reason string) {
	e.events.dispatch(func() { call(e.opts.Events.Lost, Lost{Name: e.opts.Name, Term: term, Reason: reason}) })
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Status describes an elector's state.
type Status struct {
	// Term is 0 while this instance does not lead.
	Term       int64
	Leader     string
	LeaderTerm int64
	// LeaderData, LeaderRevision and LeaderAnnounces are the leader's latest [Options].Data, Revision and Announce.
	LeaderData      string
	LeaderRevision  int64
	LeaderAnnounces string
	// Age is the time since this instance saw the last renewal.
	Age time.Duration
	// Err is the last error, or nil after a success. While it is set, this instance cannot become the leader.
	Err     error
	Failing time.Duration // since the first consecutive error
}

// Status returns the current state without calling the store.
func (e *Elector) Status() Status {
	term, _ := e.gate.currentTerm()
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.status
	s.Term = term
	if s.Err != nil {
		s.Failing = time.Since(e.failingAt)
	}
	if s.Leader != "" {
		s.Age = time.Since(e.seenAt)
	}
	if !time.Now().Before(e.expiry) {
		s.clearLeader()
	}
	return s
}

func (s *Status) clearLeader() {
	s.Leader = ""
	s.LeaderData = ""
	s.LeaderRevision = 0
	s.LeaderAnnounces = ""
}

func (e *Elector) publish() {
	c := &e.lease.core
	expiry := c.expiry()
	if expiry.Before(c.nextRead) && !c.isOwn(c.seen) {
		expiry = c.nextRead.Add(e.opts.CallTimeout) // a renewal is not read before
	}
	held := c.seen.Version != "" && !c.seen.Released && time.Now().Before(expiry)

	e.mu.Lock()
	e.seenAt, e.expiry = c.seenAt, expiry
	e.status.clearLeader()
	e.status.LeaderTerm = c.seen.Term
	if held {
		e.status.Leader, e.status.LeaderData = c.seen.Owner, c.seen.Data
		e.status.LeaderAnnounces, e.status.LeaderRevision = announcedBy(c.seen)
	}
	err := e.lease.failure()
	if err != nil && e.status.Err == nil {
		e.failingAt = time.Now()
	}
	e.status.Err = err
	e.mu.Unlock()

	if held && !c.isOwn(c.seen) {
		e.reportFollowing(Following{Name: e.opts.Name, Owner: c.seen.Owner, Term: c.seen.Term})
	}
}

func (e *Elector) reportFollowing(leader Following) {
	if leader != e.following {
		e.following = leader
		e.events.dispatch(func() { call(e.opts.Events.Following, leader) })
	}
}
