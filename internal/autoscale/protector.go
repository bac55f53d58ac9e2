package autoscale

import (
	"cmp"
	"context"
	"time"
)

// Work is an instance's work in flight.
type Work struct {
	InWork  int
	Longest time.Duration
}

// protectionLinger is how long a protection outlasts the last long delivery. It saves calls.
const protectionLinger = 30 * time.Second

type protectionState struct {
	on    bool
	until time.Time
}

func (s protectionState) next(w Work, after time.Duration, now time.Time) protectionState {
	if w.InWork > 0 && w.Longest >= cmp.Or(after, 10*time.Second) {
		return protectionState{on: true, until: now.Add(protectionLinger)}
	}
	if s.on && now.Before(s.until) {
		return s
	}
	return protectionState{}
}

// Guard sets or removes this instance's scale-in protection.
type Guard interface {
	Protect(ctx context.Context, on bool) error
}

// Protector protects this instance from scale-in during long deliveries, but not during short ones: a drain waits for
// those, and a group whose instances are all protected cannot scale in. Guard and Work are required.
type Protector struct {
	Guard Guard
	Work  func() Work
	// After is the age from which a delivery protects the instance; 0 means 10 s, negative means immediately.
	After time.Duration
	// Interval is the time between calls of Work; 0 means 5 s.
	Interval time.Duration
	// CallTimeout limits calls; 0 means 10 s.
	CallTimeout time.Duration
	// Renew is the interval for renewing a protection; 0 if it does not expire.
	Renew  time.Duration
	Events Events
}

const (
	minRetryDelay = 10 * time.Second
	maxRetryDelay = 5 * time.Minute
)

// Run sets and removes the protection until ctx ends, and finally removes it. Unless protections expire, it first
// removes protection left behind by a killed process.
func (p *Protector) Run(ctx context.Context) {
	run := protectorRun{protector: p, known: p.Renew > 0, calls: newCaller(p.Events.Failed)}
	run.calls.timeout = cmp.Or(p.CallTimeout, run.calls.timeout)
	every(ctx, cmp.Or(p.Interval, 5*time.Second), func() bool { run.update(ctx, time.Now()); return true })

	if run.maybeSet {
		_ = run.set(context.WithoutCancel(ctx), false) // reported already
	}
}

type protectorRun struct {
	protector *Protector
	calls     caller
	state     protectionState
	// on is the state last set; known means that it is certain.
	on, known bool
	// maybeSet means that protection was requested and not removed since.
	maybeSet  bool
	renewAt   time.Time // zero if not needed
	pause     time.Duration
	notBefore time.Time
}

func (p *protectorRun) update(ctx context.Context, now time.Time) {
	p.state = p.state.next(p.protector.Work(), p.protector.After, now)
	want := p.state.on
	expires := want && !p.renewAt.IsZero() && !now.Before(p.renewAt)
	if p.known && p.on == want && !expires {
		return
	}
	if now.Before(p.notBefore) || ctx.Err() != nil {
		return
	}

	if err := p.set(ctx, want); err != nil {
		p.pause = min(max(2*p.pause, minRetryDelay), maxRetryDelay)
		p.notBefore = now.Add(p.pause)
		return
	}
	p.pause = 0
}

func (p *protectorRun) set(ctx context.Context, on bool) error {
	p.maybeSet = p.maybeSet || on
	err := p.calls.do(ctx, "setting scale-in protection",
		func(ctx context.Context) error { return p.protector.Guard.Protect(ctx, on) })
	if err != nil {
		p.known = false // the failed call may have been applied
		return err
	}

	changed := p.on != on
	p.on = on
	p.maybeSet = on
	p.known = true
	if p.protector.Renew > 0 {
		p.renewAt = time.Now().Add(p.protector.Renew)
	}
	if changed {
		notify(p.protector.Events.Protected, on)
	}

	return nil
}
