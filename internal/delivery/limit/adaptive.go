package limit

import (
	"math"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

const (
	initialLimit = 10
	// stabilizationWindow is how long a peak of deliveries keeps the limit from falling for lack of load.
	stabilizationWindow = time.Minute
	// baselineWindows is the number of library windows (one second, or 50 deliveries if that takes longer) that
	// define normal speed. With the library's default of 10, the limit swings to three times the app's capacity under
	// overload. With many more, an app that legitimately slows down is throttled for minutes.
	baselineWindows = 50
)

// newAdaptive returns a limit that follows the duration of deliveries, measured by the library's own clock.
func newAdaptive(least, most, start int, changed func(from, to int)) adaptivelimiter.AdaptiveLimiter[any] {
	return adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(least), uint(most), uint(start)).
		WithMaxLimitStabilizationWindow(stabilizationWindow).
		WithBaselineWindow(baselineWindows).
		OnLimitChanged(func(e adaptivelimiter.LimitChangedEvent) { changed(int(e.OldLimit), int(e.NewLimit)) }).
		Build()
}

const unlimited = math.MaxInt32

// averageOver is the approximate number of deliveries in an average.
const averageOver = 32

// estimate holds measurements of past deliveries.
type estimate struct {
	// duration is the mean duration of a successful delivery; 0 before the first.
	duration float64
	// batch is the size of the largest batch. A mean would keep shrinking, because the worker cuts batches to the
	// available room.
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

// showsSpeed reports whether an unsuccessful delivery is a sample of the app's speed. It excludes failures faster
// than a success, so that an app which rejects requests at once does not appear fast.
func (e *estimate) showsSpeed(took time.Duration) bool {
	return e.duration > 0 && float64(took) >= e.duration
}

// room returns how many messages may start within d.
func (e *estimate) room(limit, inWork int, d time.Duration) int {
	deliveries := float64(max(limit-inWork, 0))
	if e.duration > 0 {
		deliveries += float64(limit) * max(float64(d), 0) / e.duration
	}
	return e.messages(deliveries)
}

func (e *estimate) messages(deliveries float64) int {
	return int(min(deliveries*float64(e.batch), unlimited))
}
