package autoscale

import (
	"cmp"
	"context"
	"time"
)

// Work is the work in progress of an instance.
type Work struct {
	InWork  int           // deliveries in work
	Longest time.Duration // how long the oldest of them has been running
}

// Protection configures when an instance is protected from scale-in. The zero value is
// valid. Short work needs no protection, because a drain waits for it, and a group can
// never scale in if all instances are protected all the time.
type Protection struct {
	// After is how long a delivery must have been running; 0 means 10 s,
	// negative means none.
	After time.Duration
	// Linger is how long protection lasts without such work; 0 means 30 s. It keeps the
	// number of calls low.
	Linger time.Duration
}

// protectionState is the state of a Protection. The zero value is the initial state.
type protectionState struct {
	on bool
	// until is when protection ends without further long work.
	until time.Time
}

// Decide returns whether the instance should be protected now.
func (p Protection) Decide(s protectionState, w Work, now time.Time) (next protectionState, on bool) {
	if w.InWork > 0 && w.Longest >= cmp.Or(p.After, 10*time.Second) {
		return protectionState{on: true, until: now.Add(cmp.Or(p.Linger, 30*time.Second))}, true
	}
	if s.on && now.Before(s.until) {
		return s, true
	}
	return protectionState{}, false
}

// Guard sets and removes the scale-in protection of this instance.
type Guard interface {
	// Protect sets the protection, or removes it.
	Protect(ctx context.Context, on bool) error
}

// Protector protects this instance from scale-in while it does long work. Guard and Work
// are required.
type Protector struct {
	Guard Guard
	// Work returns the current work.
	Work func() Work
	// Protection configures when to protect.
	Protection Protection
	// Interval is the time between two calls of Work; 0 means 5 s.
	Interval time.Duration
	// CallTimeout limits one call; 0 means 10 s.
	CallTimeout time.Duration
	// Renew is how often protection is set again, if it expires by itself; 0 means that
	// it does not expire.
	Renew  time.Duration
	Events Events
}

// The delays after a failed call.
const (
	minRetryDelay = 10 * time.Second
	maxRetryDelay = 5 * time.Minute
)

// Run sets and removes the protection until ctx ends. It then removes the protection
// that it may have set. At the start it removes the protection of an
// earlier process that was killed, unless that expires by itself.
func (p *Protector) Run(ctx context.Context) {
	run := protectorRun{protector: p, known: p.Renew > 0, calls: newCaller(p.CallTimeout, p.Events.Failed)}
	every(ctx, cmp.Or(p.Interval, 5*time.Second), func() bool { run.update(ctx, time.Now()); return true })

	if run.maybeSet {
		_ = run.set(context.WithoutCancel(ctx), false) // reported
	}
}

// protectorRun is one run of a Protector.
type protectorRun struct {
	protector *Protector
	calls     caller
	state     protectionState
	// on is the protection that was last set; known is false until a call succeeded.
	on, known bool
	// maybeSet is true when protection was requested and not removed since.
	maybeSet  bool
	renewAt   time.Time // zero for never
	pause     time.Duration
	notBefore time.Time
}

// update sets the protection that the work needs, unless it is set already or a call has
// just failed.
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

// set makes the call and reports its result.
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
