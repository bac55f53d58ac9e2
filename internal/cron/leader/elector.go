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

// Store keeps leases by name and replaces them by compare-and-swap. Both
// methods must see the newest write (no stale replicas), return when their
// context ends, and be safe for concurrent use. Package registrytest has the
// suite that every implementation passes.
//
// An error says that the outcome is unknown: a swap that reports one may have
// been applied, may be applied later, or never.
type Store interface {
	// Read returns the lease stored under name, the zero value when there is
	// none.
	Read(ctx context.Context, name string) (queue.Lease, error)
	// Swap stores next under name if the Version stored there is old.Version
	// ("" when nothing is stored); the other fields of old are not looked at.
	// It returns whether it won and what is stored after the call.
	//
	// A Swap whose next is stored already has won: it repeats a call whose
	// answer was lost. A next without a Version is refused with an error.
	Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease, err error)
}

// Elector takes part in the election of one leader. Every method but Run may
// be called at any time, by any goroutine.
type Elector struct {
	opts   Options
	gate   *gate
	events *dispatcher
	// poke wakes the loop when the gate closed; it holds 1.
	poke chan struct{}

	// lease belongs to the goroutine of Run.
	lease holder
	// following is the holder that listeners were told of last.
	following Following

	started atomic.Bool

	mu     sync.Mutex
	status Status
	// seenAt and expiry are the times of status: the first look at the version of the
	// lease, and until when that holds.
	seenAt, expiry time.Time
}

// New returns an elector over a store; [Elector.Run] starts it. It refuses
// times with which no lease can be kept.
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
		poke:   make(chan struct{}, 1),
		lease:  holder{store: store, opts: opts, core: newCore(opts)},
	}
	e.lease.onFailure = e.reportFailure
	e.gate = &gate{standstill: opts.Standstill, wall: opts.Wall, began: e.reportElected, lost: e.reportLost,
		changed: make(chan struct{})}
	return e, nil
}

// Term returns the term in which this instance leads. ok is false as
// soon as that is not certain: outside the trust window, which begins with the
// attempt that won the lease and ends Margin before the lease does, and after
// this process or its machine stood still. A term that was not ok once is never
// ok again.
//
// Ask right before each effect, and hand the term on with it, so that whatever
// takes the effect can refuse a term that is not current any more: nothing
// else is proof against standing still between the question and the effect.
func (e *Elector) Term() (term int64, ok bool) { return e.gate.holds() }

// Changed returns a channel that is closed when Term next begins or ceases to
// be ok, at most a second late for the latter. Take it before asking Term, so
// that no change is missed.
func (e *Elector) Changed() <-chan struct{} { return e.gate.changes() }

// Run takes part until ctx ends. It then closes the gate, releases the lease,
// so that another instance can take it at once, and returns nil. Releasing
// takes at most CallTimeout, and so does waiting for a listener that blocks.
// A second Run is refused.
func (e *Elector) Run(ctx context.Context) error {
	if e.started.Swap(true) {
		return fmt.Errorf("the elector of lease %s was run before: create a new one", e.opts.Name)
	}
	go e.events.run()
	defer e.events.end(e.opts.CallTimeout)
	ticking, stop := context.WithCancel(context.Background())
	defer stop()
	e.gate.tick()
	go e.tick(ticking)

	for ctx.Err() == nil {
		e.round(ctx)
	}
	e.gate.close("stopped", true)
	e.giveBack(context.WithoutCancel(ctx))
	return nil
}

// tick tells the gate the process is alive.
func (e *Elector) tick(ctx context.Context) {
	ticker := time.NewTicker(e.opts.Standstill)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.gate.tick()
		}
	}
}

// round makes the next step.
func (e *Elector) round(ctx context.Context) {
	e.obeyGate() // which closes by itself when the lease was not renewed in time
	next := e.lease.core.decide(time.Now())
	switch next.do {
	case wait:
		waitUntil(ctx, next.until, e.poke)
	case read:
		_ = e.lease.read(ctx) // told to the listeners; the next round tries again
	case swap:
		e.swap(ctx, next.attempt)
	}
	e.publish()
}

// obeyGate makes the core lose a term that the gate has lost.
func (e *Elector) obeyGate() {
	if term, _ := e.gate.holds(); e.lease.core.term != 0 && term != e.lease.core.term {
		e.lease.core.lose()
	}
}

// swap makes one try of an attempt, and opens or closes the gate by its outcome.
func (e *Elector) swap(ctx context.Context, a *attempt) {
	if a.wall.IsZero() {
		a.wall = e.opts.Wall()
	}
	won, current, err := e.lease.try(ctx, a)
	e.obeyGate()
	if err != nil {
		e.lease.failed(ctx, err)
		return
	}
	leads := e.lease.core.swapped(time.Now(), a, won, current)
	switch {
	case leads && !e.gate.open(a, e.lease.core.trusted):
		e.lease.core.lose()
		e.lease.failed(ctx, errors.New("the process or the machine was suspended while the store answered"))
	case !leads:
		e.gate.close(e.whyLost(current), false)
	}
}

// whyLost tells a lease that another took from one that was confirmed too late.
func (e *Elector) whyLost(current queue.Lease) string {
	switch {
	case e.lease.core.mine(current):
		return "the lease was not renewed in time"
	case current.Version == "":
		return "the lease was removed from the store"
	}
	return fmt.Sprintf("the lease is held by %s, term %d", current.Owner, current.Term)
}

// giveBack releases the lease if it is this instance's.
func (e *Elector) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.CallTimeout)
	defer cancel()
	_, _ = e.lease.release(ctx) // else the lease ends by itself
	e.lease.core.lose()
	e.publish()
}

// reportFailure publishes a failure of the store.
func (e *Elector) reportFailure(err error, retry time.Duration) {
	failure := Failure{Name: e.opts.Name, Err: err, Consecutive: e.lease.core.failures, Retry: retry}
	e.mu.Lock()
	e.status.Err = err
	e.mu.Unlock()
	e.events.dispatch(func() { call(e.opts.Events.Failed, failure) })
}

// reportElected is called by the gate, with its lock held.
func (e *Elector) reportElected(term int64) {
	e.events.dispatch(func() { call(e.opts.Events.Elected, Elected{Name: e.opts.Name, Term: term}) })
}

// reportLost is called by the gate, with its lock held.
func (e *Elector) reportLost(term int64, reason string) {
	e.events.dispatch(func() { call(e.opts.Events.Lost, Lost{Name: e.opts.Name, Term: term, Reason: reason}) })
	select {
	case e.poke <- struct{}{}:
	default:
	}
}

// Status is what an elector knows, for people.
type Status struct {
	// Term is the term in which this instance leads, 0 when it does not.
	Term int64
	// Leader holds the lease; "" if no instance does as far as is known: it
	// was never written, was given back, or ran out. LeaderTerm is its term.
	Leader     string
	LeaderTerm int64
	// LeaderData is the holder's [Options].Data.
	LeaderData string
	// Age is how long ago this instance saw the holder's last renewal.
	Age time.Duration
	// Err is the last of the store's failures since its last success. While there are
	// any, this instance does not become the leader.
	Err error
}

// Status returns the current state without asking the store.
func (e *Elector) Status() Status {
	term, _ := e.gate.holds()
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.status
	s.Term = term
	if s.Leader != "" {
		s.Age = time.Since(e.seenAt)
		if !time.Now().Before(e.expiry) {
			s.Leader, s.LeaderData = "", ""
		}
	}
	return s
}

// publish copies the core's state for Status, and calls listeners
// when another instance took the lead.
func (e *Elector) publish() {
	c := &e.lease.core
	held := c.seen.Version != "" && !c.seen.Released && time.Now().Before(c.expiry())
	e.mu.Lock()
	e.seenAt, e.expiry = c.seenAt, c.expiry()
	e.status.Leader, e.status.LeaderData, e.status.LeaderTerm = "", "", c.seen.Term
	if held {
		e.status.Leader, e.status.LeaderData = c.seen.Owner, c.seen.Data
	}
	if c.failures == 0 {
		e.status.Err = nil
	}
	e.mu.Unlock()

	if !held || c.mine(c.seen) {
		return
	}
	if now := (Following{Name: e.opts.Name, Owner: c.seen.Owner, Term: c.seen.Term}); now != e.following {
		e.following = now
		e.events.dispatch(func() { call(e.opts.Events.Following, now) })
	}
}
