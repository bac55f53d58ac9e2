package limit

import (
	"math"
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

// unlimited is the answer of [Limiter.Room] when nothing limits it.
const unlimited = math.MaxInt32

// averageOver is the number of deliveries, roughly, that an average covers.
const averageOver = 32

// estimate is the app's speed, and the size of batches, as past deliveries show them.
type estimate struct {
	// duration is the mean duration of a successful delivery; 0 before the first.
	duration float64
	// batch is the largest number of messages in one delivery. It is not a mean:
	// the worker cuts batches to the room there is, and a mean would shrink with its
	// own effect.
	batch int
}

// recordDuration adds a successful delivery.
func (e *estimate) recordDuration(took time.Duration) {
	t := max(float64(took), 1)
	if e.duration == 0 {
		e.duration = t
		return
	}
	e.duration += (t - e.duration) / averageOver
}

// showsSpeed reports whether a delivery that did not succeed says something about
// the app's speed. A failure that is faster than a success was not worked on: an app
// that rejects requests at once must not look fast.
func (e *estimate) showsSpeed(took time.Duration) bool {
	return e.duration > 0 && float64(took) >= e.duration
}

// room returns how many messages may start within d where limit deliveries are
// allowed at once and inWork are in work.
func (e *estimate) room(limit, inWork int, d time.Duration) int {
	deliveries := float64(max(limit-inWork, 0))
	if e.duration > 0 {
		deliveries += float64(limit) * max(float64(d), 0) / e.duration
	}
	return e.messages(deliveries)
}

// messages returns how many messages that many deliveries can carry.
func (e *estimate) messages(deliveries float64) int {
	return int(min(deliveries*float64(e.batch), unlimited))
}
