package limit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

const epsilon = 1e-9

// rateLimiter requires that time does not go backward: the library would grant the same capacity twice.
type rateLimiter struct{ *rate.Limiter }

// If perSecond is 0, newRateLimiter returns nil, which allows everything.
func newRateLimiter(perSecond float64, batch int) *rateLimiter {
	if perSecond == 0 {
		return nil
	}
	return &rateLimiter{rate.NewLimiter(rate.Limit(perSecond), burstOf(perSecond, batch))}
}

// burstOf is small, because a burst exceeds the rate after a pause, but large enough for late timers and batches.
func burstOf(perSecond float64, batch int) int {
	return int(min(max(perSecond/10, min(float64(batch), perSecond), 1), unlimited))
}

// acquire takes capacity for n messages, or returns how long to wait for it. A batch larger than the burst uses
// future capacity.
func (r *rateLimiter) acquire(now time.Time, n int) time.Duration {
	if r == nil {
		return 0
	}
	burst := r.Burst()
	first := min(n, burst)
	if !r.AllowN(now, first) {
		return r.timeUntil(now, first)
	}
	for n -= first; n > 0; n -= burst {
		r.ReserveN(now, min(n, burst))
	}
	return 0
}

func (r *rateLimiter) timeUntil(now time.Time, n int) time.Duration {
	seconds := (float64(n) - r.TokensAt(now)) / float64(r.Limit())
	nanoseconds := seconds * float64(time.Second)
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(time.Duration(math.Ceil(nanoseconds)), 1)
}

func (r *rateLimiter) room(now time.Time, d time.Duration) int {
	if r == nil {
		return unlimited
	}
	messages := r.TokensAt(now) + float64(r.Limit())*max(d, 0).Seconds() + epsilon
	return int(min(max(messages, 0), unlimited))
}
