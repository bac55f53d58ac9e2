package autoscale

import (
	"cmp"
	"context"
	"time"
)

// Work is an instance's work in flight.
type Work struct {
	InWork  int           // deliveries
	Longest time.Duration // longest one so far
}

// Protection configures when an instance is protected from scale-in. Short deliveries need no protection, because a
// drain waits for them, and a group with only protected instances could never scale in.
type Protection struct {
	// Age at which a delivery is protected; 0 means 10 s, negative means immediately.
	After time.Duration
	// How long protection continues without such a delivery; 0 means 30 s. It reduces the number of calls.
	Linger time.Duration
}

// The zero value is the initial state.
type protectionState struct {
	on bool
	// end without further long deliveries
	until time.Time
}

// Decide reports whether the instance should be protected.
func (p Protection) Decide(s protectionState, w Work, now time.Time) (next protectionState, on bool) {
	if w.InWork > 0 && w.Longest >= cmp.Or(p.After, 10*time.Second) {
		return protectionState{on: true, until: now.Add(cmp.Or(p.Linger, 30*time.Second))}, true
	}
	if s.on && now.Before(s.until) {
		return s, true
	}
	return protectionState{}, false
}

// Guard controls the scale-in protection of this instance.
type Guard interface {
	// Protect sets or removes the protection.
	Protect(ctx context.Context, on bool) error
}

// Protector protects this instance from scale-in during long deliveries. Guard and Work are required.
type Protector struct {
	Guard      Guard
	Work       func() Work
	Protection Protection
	// Interval between two calls of Work; 0 means 5 s.
	Interval time.Duration
	// CallTimeout limits one call; 0 means 10 s.
	CallTimeout time.Duration
	// Renew is the interval for renewing protection that expires; 0 means that it does not.
	Renew  time.Duration
	Events Events
}

const (
	minRetryDelay = 10 * time.Second
	maxRetryDelay = 5 * time.Minute
)

// Run sets and removes the protection until ctx ends, and then removes it. At the start it removes protection left by
// a killed process, unless it expires.
func (p *Protector) Run(ctx context.Context) {
	run := protectorRun{protector: p, known: p.Renew > 0, calls: newCaller(p.CallTimeout, p.Events.Failed)}
	every(ctx, cmp.Or(p.Interval, 5*time.Second), func() bool { run.update(ctx, time.Now()); return true })

	if run.maybeSet {
		_ = run.set(context.WithoutCancel(ctx), false) // reported already
	}
}

type protectorRun struct {
	protector *Protector
	calls     caller
	state     protectionState
	// on is the protection last set; known is false until a call succeeds.
	on, known bool
	// protection was requested and not removed since
	maybeSet  bool
	renewAt   time.Time // zero for never
	pause     time.Duration
	notBefore time.Time
}

// update sets the required protection, unless it is already set or a call has just failed.
func (p *protectorRun) update(ctx context.Context, now time.Time) {
	var want bool
	p.state, want = p.protector.Protection.Decide(p.state, p.protector.Work(), now)
	expires := want && !p.renewAt.IsZero() && !now.Before(p.renewAt)
	if ctx.Err() != nil || p.known && p.on == want && !expires || now.Before(p.notBefore) {
		return
	}
	if err := p.set(ctx, want); err != nil {
		p.pause = min(max(2*p.pause, minRetryDelay), maxRetryDelay)
		p.notBefore = now.Add(p.pause)
	}
}

func (p *protectorRun) set(ctx context.Context, on bool) error {
	p.maybeSet = p.maybeSet || on
	err := p.calls.do(ctx, "setting scale-in protection",
		func(ctx context.Context) error { return p.protector.Guard.Protect(ctx, on) })
	if err != nil {
		p.known = false // it may have been applied
		return err
	}
	changed := p.on != on
	p.on = on
	p.maybeSet = on
	p.known = true
	p.pause = 0
	if p.protector.Renew > 0 {
		p.renewAt = time.Now().Add(p.protector.Renew)
	}
	if changed {
		call(p.protector.Events.Protected, on)
	}
	return nil
}
