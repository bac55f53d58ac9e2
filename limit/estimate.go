package limit

import (
	"math"
	"time"
)

// unlimited is the answer of [Limiter.Room] when nothing limits it.
const unlimited = math.MaxInt32

// averageOver is the number of deliveries, roughly, that an average covers.
const averageOver = 32

// estimate is what past deliveries tell about the app's speed and about the size
// of batches.
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
