package limit

import (
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

const (
	// initialLimit is the adaptive limit at the beginning, unless
	// [Options.Concurrency] is lower.
	initialLimit = 10
	// stabilizationWindow is how long a peak of deliveries in work keeps the limit
	// from falling for lack of load.
	stabilizationWindow = time.Minute
	// baselineWindows is the number of the library's windows (one second, or 50
	// deliveries where that takes longer) from which it learns what is normal. With
	// the library's default of 10 it forgets within seconds of overload how fast the
	// app was, and the limit swings to three times what the app can take. With far
	// more, an app whose work legitimately slows down is held back for many minutes.
	baselineWindows = 50
)

// adaptive adjusts the concurrency to the duration of deliveries. The library
// does the calculation and measures on its own clock, from acquire to release.
type adaptive struct {
	lib adaptivelimiter.AdaptiveLimiter[any]
}

// newAdaptive returns a limit that moves between least and most, from start.
func newAdaptive(least, most, start int, changed func(from, to int)) *adaptive {
	return &adaptive{lib: adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(least), uint(most), uint(start)).
		WithMaxLimitStabilizationWindow(stabilizationWindow).
		WithBaselineWindow(baselineWindows).
		OnLimitChanged(func(e adaptivelimiter.LimitChangedEvent) { changed(int(e.OldLimit), int(e.NewLimit)) }).
		Build()}
}

// available reports whether one more delivery may start. A nil limit allows
// everything.
func (a *adaptive) available() bool { return a == nil || a.lib.CanAcquirePermit() }

// acquire starts a delivery; call it only when available.
func (a *adaptive) acquire() adaptivelimiter.Permit {
	if a == nil {
		return nil
	}
	permit, _ := a.lib.TryAcquirePermit()
	return permit
}

// release ends a delivery. record is true when its duration says something
// about the app's speed.
func (a *adaptive) release(permit adaptivelimiter.Permit, record bool) {
	switch {
	case permit == nil:
	case record:
		permit.Record()
	default:
		permit.Drop()
	}
}

// limit returns the current limit, 0 for none.
func (a *adaptive) limit() int {
	if a == nil {
		return 0
	}
	return a.lib.Limit()
}

// room returns how many messages may start within d.
func (a *adaptive) room(e *estimate, d time.Duration) int {
	if a == nil {
		return unlimited
	}
	return e.room(a.lib.Limit(), a.lib.Inflight(), d)
}
