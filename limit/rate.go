package limit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// epsilon is the part of a message that rounding may lose.
const epsilon = 1e-9

// rateLimiter limits messages per second. Calls must not go back in time: the
// library would grant the time between twice.
type rateLimiter struct {
	lib *rate.Limiter
	// perSecond is the rate, above 0; batch is the maximum number of messages in one
	// delivery; burst is the most that can be saved up.
	perSecond float64
	batch     int
	burst     int
}

// newRateLimiter returns nil, which allows everything, for a rate of 0.
func newRateLimiter(perSecond float64, batch int) *rateLimiter {
	if perSecond == 0 {
		return nil
	}
	burst := burstOf(perSecond, batch)
	lib := rate.NewLimiter(rate.Limit(perSecond), burst)
	return &rateLimiter{lib: lib, perSecond: perSecond, batch: batch, burst: burst}
}

// burstOf returns the most that can be saved up: a tenth of a second's worth, or a
// whole batch if that is more, but no more than a second's worth, and at least 1.
// After a pause the burst comes on top of the rate, so it should be small, yet large
// enough that a late timer or a batch does not reduce the rate.
func burstOf(perSecond float64, batch int) int {
	return int(min(max(perSecond/10, min(float64(batch), perSecond), 1), unlimited))
}

// set changes the rate. What was saved up stays, up to the new burst.
func (r *rateLimiter) set(now time.Time, perSecond float64) {
	r.perSecond, r.burst = perSecond, burstOf(perSecond, r.batch)
	r.lib.SetLimitAt(now, rate.Limit(perSecond))
	r.lib.SetBurstAt(now, r.burst)
}

// acquire starts n messages and returns 0, or consumes nothing and returns how
// long to wait. A batch larger than the burst starts when the whole burst is
// available and borrows the rest from the future, so that the rate holds on
// average.
func (r *rateLimiter) acquire(now time.Time, n int) time.Duration {
	if r == nil {
		return 0
	}
	first := min(n, r.burst)
	if !r.lib.AllowN(now, first) {
		return r.wait(now, first)
	}
	for n -= first; n > 0; n -= r.burst {
		r.lib.ReserveN(now, min(n, r.burst))
	}
	return 0
}

// wait returns the time until n messages, at most the burst, are available.
func (r *rateLimiter) wait(now time.Time, n int) time.Duration {
	seconds := (float64(n) - r.lib.TokensAt(now)) / r.perSecond
	if seconds >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return max(time.Duration(math.Ceil(seconds*float64(time.Second))), 1)
}

// room returns how many messages may start within d.
func (r *rateLimiter) room(now time.Time, d time.Duration) int {
	if r == nil {
		return unlimited
	}
	messages := r.lib.TokensAt(now) + r.perSecond*max(d, 0).Seconds() + epsilon
	return int(min(max(messages, 0), unlimited))
}
