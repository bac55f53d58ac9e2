package limit

import (
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

const (
	// stable is for how long a peak of deliveries in work keeps the limit from
	// falling for lack of load.
	stabilizationWindow = time.Minute
	// baseline is over how many of the library's windows (of a second, or 50
	// deliveries where that takes longer) it learns what is normal. Its own 10
	// forgets within seconds of overload how fast the app once was, and swings to
	// three times the concurrency that the app can take; with much more, an app
	// whose work becomes longer by nature is held down for many minutes.
	baselineWindows = 50
)

// adaptive finds a concurrency by what deliveries take. The library that does
// the maths measures on its own clock, from take to release.
type adaptive struct {
	lib adaptivelimiter.AdaptiveLimiter[any]
}

// newAdaptive returns nil, which lets everything pass, without options.
func newAdaptive(opts *Adaptive, onStateChanged func(from, to int)) *adaptive {
	if opts == nil {
		return nil
	}
	return &adaptive{lib: adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(opts.Min), uint(opts.Max), uint(opts.Start)).
		WithMaxLimitStabilizationWindow(stabilizationWindow).
		WithBaselineWindow(baselineWindows).
		OnLimitChanged(func(e adaptivelimiter.LimitChangedEvent) { onStateChanged(int(e.OldLimit), int(e.NewLimit)) }).
		Build()}
}

// free reports whether one more delivery may begin.
func (a *adaptive) free() bool { return a == nil || a.lib.CanAcquirePermit() }

// take begins a delivery; call it only after free.
func (a *adaptive) take() adaptivelimiter.Permit {
	if a == nil {
		return nil
	}
	permit, _ := a.lib.TryAcquirePermit()
	return permit
}

// release ends a delivery. telling is true when its time says something about
// the app's speed.
func (a *adaptive) release(permit adaptivelimiter.Permit, showsSpeed bool) {
	switch {
	case permit == nil:
	case showsSpeed:
		permit.Record()
	default:
		permit.Drop()
	}
}

// limit returns the limit of now, 0 for none.
func (a *adaptive) limit() int {
	if a == nil {
		return 0
	}
	return a.lib.Limit()
}

// room returns how many messages may begin within d.
func (a *adaptive) room(p *estimate, d time.Duration) int {
	if a == nil {
		return unlimited
	}
	return p.room(a.lib.Limit(), a.lib.Inflight(), d)
}
