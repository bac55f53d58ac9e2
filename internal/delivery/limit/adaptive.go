package limit

import (
	"math"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

const (
	initialLimit = 10
	// For stabilizationWindow after a peak of concurrent deliveries, the limit does not fall for lack of load.
	stabilizationWindow = time.Minute
	// baselineWindows is the number of library windows (1 s or 50 deliveries, whichever is longer) that define the
	// usual speed. With the default of 10, the limit rises to three times the app's capacity under overload. With
	// many more, an app that becomes slower for other reasons is throttled for minutes.
	baselineWindows = 50
)

func newAdaptive(least, most, start int, changed func(from, to int)) adaptivelimiter.AdaptiveLimiter[any] {
	return adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(least), uint(most), uint(start)).
		WithMaxLimitStabilizationWindow(stabilizationWindow).
		WithBaselineWindow(baselineWindows).
		OnLimitChanged(func(e adaptivelimiter.LimitChangedEvent) { changed(int(e.OldLimit), int(e.NewLimit)) }).
		Build()
}

const unlimited = math.MaxInt32

const averageOver = 32

type estimate struct {
	// duration is the mean of successful deliveries in nanoseconds; 0 before the first.
	duration float64
	// batch is the size of the largest batch so far. A mean would keep shrinking, because room limits batches.
	batch int
}

func (e *estimate) recordDuration(took time.Duration) {
	t := max(float64(took), 1)
	if e.duration == 0 {
		e.duration = t
		return
	}
	e.duration += (t - e.duration) / averageOver
}

// showsSpeed ignores failures that are faster than the mean success: an app that rejects requests at once would appear
// fast.
func (e *estimate) showsSpeed(took time.Duration) bool {
	return e.duration > 0 && float64(took) >= e.duration
}

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
