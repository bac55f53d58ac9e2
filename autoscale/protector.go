package autoscale

import (
	"context"
	"errors"
	"time"
)

// Work is what an instance has in hand.
type Work struct {
	// InWork is how many deliveries run.
	InWork int
	// Longest is how long the oldest of them has been running.
	Longest time.Duration
}

// Protection says when an instance is to be kept from scale-in. The zero value
// works. Short work needs none, for a drain waits for it, and instances that
// are all protected all the time can never be scaled in.
type Protection struct {
	// After is how long a delivery must have been running; 0 means 10 s,
	// negative means none.
	After time.Duration
	// Linger is how long protection stays when there is no such work; 0 means
	// 30 s. It keeps the calls few.
	Linger time.Duration
}

// ProtectionState is what a Protection remembers. The zero value is a start.
type ProtectionState struct {
	on bool
	// until is when protection ends if no long work is seen before.
	until time.Time
}

// Decide tells whether the instance is to be protected now.
func (p Protection) Decide(s ProtectionState, w Work, now time.Time) (next ProtectionState, on bool) {
	after, linger := p.After, p.Linger
	if after == 0 {
		after = 10 * time.Second
	}
	if linger == 0 {
		linger = 30 * time.Second
	}
	if w.InWork > 0 && w.Longest >= after {
		return ProtectionState{on: true, until: now.Add(linger)}, true
	}
	if s.on && now.Before(s.until) {
		return s, true
	}
	return ProtectionState{}, false
}

// Guard sets and takes away the protection of this instance.
type Guard interface {
	// Protect sets protection from scale-in, or takes it away.
	Protect(ctx context.Context, on bool) error
}

// Protector keeps the protection of this instance as its work asks for. Its
// zero value has no parts and cannot run.
type Protector struct {
	Guard Guard
	// Work returns what is in hand.
	Work func() Work
	// Protection says when.
	Protection Protection
	// Interval is the time between two looks at the work; 0 means 5 s.
	Interval time.Duration
	// CallTimeout bounds one call; 0 means 10 s.
	CallTimeout time.Duration
	// Renew is how often protection is set again while it lasts, where it would
	// end by itself; 0 means that it does not.
	Renew  time.Duration
	Events Events
}

// The pauses after a call that failed.
const (
	minRetryDelay = 10 * time.Second
	maxRetryDelay = 5 * time.Minute
)

// Run keeps the protection until ctx ends; it then takes away what it may have
// set, and returns nil. A protection left behind by a process that was killed
// is taken away at the start, unless it ends by itself.
func (p *Protector) Run(ctx context.Context) error {
	if p.Guard == nil || p.Work == nil {
		return errors.New("protection from scale-in needs a guard and a look at the work")
	}
	interval := p.Interval
	if interval <= 0 {
		interval = 5 * time.Second
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	k := protectorRun{Protector: p, known: p.Renew > 0}
	for {
		k.update(ctx, time.Now())
		select {
		case <-ctx.Done():
			if k.maybeSet {
				_ = k.set(context.WithoutCancel(ctx), false) // told, and the group outlives us
			}
			return nil
		case <-ticker.C:
		}
	}
}

// keeper is a protector at work.
type protectorRun struct {
	*Protector
	state ProtectionState
	// on is what was set last; known is false until a call has worked.
	on, known bool
	// perhaps: protection was asked for, and not taken away since.
	maybeSet  bool
	renewAt   time.Time // zero for never
	failures  int
	pause     time.Duration
	notBefore time.Time
}

// look sets what the work asks for, unless it is set or a call has just failed.
func (k *protectorRun) update(ctx context.Context, now time.Time) {
	var want bool
	k.state, want = k.Protection.Decide(k.state, k.Work(), now)
	expires := want && !k.renewAt.IsZero() && !now.Before(k.renewAt)
	if ctx.Err() != nil || k.known && k.on == want && !expires || now.Before(k.notBefore) {
		return
	}
	if err := k.set(ctx, want); err != nil {
		k.pause = min(max(2*k.pause, minRetryDelay), maxRetryDelay)
		k.notBefore = now.Add(k.pause)
	}
}

// set makes the call and tells of it.
func (k *protectorRun) set(ctx context.Context, on bool) error {
	timeout := k.CallTimeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	k.maybeSet = k.maybeSet || on
	err := k.Guard.Protect(limited, on)
	if err != nil {
		// It may have been applied.
		k.known = false
		k.failures++
		if ctx.Err() == nil {
			call(k.Events.Failed, Failed{Doing: "setting the protection from scale-in", Err: err, InARow: k.failures})
		}
		return err
	}
	changed := k.on != on
	k.on, k.maybeSet, k.known, k.failures, k.pause = on, on, true, 0, 0
	if k.Renew > 0 {
		k.renewAt = time.Now().Add(k.Renew)
	}
	if changed {
		call(k.Events.Protected, Protected{On: on})
	}
	return nil
}
