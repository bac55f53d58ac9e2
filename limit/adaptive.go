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

// newAdaptive returns a concurrency limit that follows the duration of deliveries, between
// least and most, from start. The library does the calculation and measures on its own
// clock, from acquire to release.
func newAdaptive(least, most, start int, changed func(from, to int)) adaptivelimiter.AdaptiveLimiter[any] {
	return adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(least), uint(most), uint(start)).
		WithMaxLimitStabilizationWindow(stabilizationWindow).
		WithBaselineWindow(baselineWindows).
		OnLimitChanged(func(e adaptivelimiter.LimitChangedEvent) { changed(int(e.OldLimit), int(e.NewLimit)) }).
		Build()
}
