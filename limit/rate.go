package limit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// hair is the part of a message that rounding may take away.
const epsilon = 1e-9

// pacer keeps the rate of messages. It must be asked with times that never run
// backwards: the library below would pay the time between out twice.
type rateLimiter struct {
	lib *rate.Limiter
	// perSecond is the rate, above 0; batch is the most messages in one delivery;
	// burst is the most that may be saved up.
	perSecond float64
	batch     int
	burst     int
}

// newPacer returns nil, which lets everything pass, for a rate of 0.
func newRateLimiter(perSecond float64, batch int) *rateLimiter {
	if perSecond == 0 {
		return nil
	}
	burst := burstOf(perSecond, batch)
	return &rateLimiter{lib: rate.NewLimiter(rate.Limit(perSecond), burst), perSecond: perSecond, batch: batch, burst: burst}
}

// burstOf is the most that may be saved up: what the rate yields in a tenth of a
// second, or a whole batch where that is more, but no more than in a second; at least
// 1. After a rest it comes on top of what the rate yields, so that it should be little,
// and a timer that is late, or a batch, should not cost any of the rate.
func burstOf(perSecond float64, batch int) int {
	return int(min(max(perSecond/10, min(float64(batch), perSecond), 1), unlimited))
}

// set changes the rate; what was saved up stays, up to the new burst.
func (p *rateLimiter) set(now time.Time, perSecond float64) {
	p.perSecond, p.burst = perSecond, burstOf(perSecond, p.batch)
	p.lib.SetLimitAt(now, rate.Limit(perSecond))
	p.lib.SetBurstAt(now, p.burst)
}

// begin begins n messages and returns 0, or takes nothing and returns after how
// long they may begin. A batch of more than the burst begins when all that can be
// saved up is there, and borrows the rest from the time to come, so that the rate
// holds in the long run.
func (p *rateLimiter) begin(now time.Time, n int) time.Duration {
	if p == nil {
		return 0
	}
	first := min(n, p.burst)
	if !p.lib.AllowN(now, first) {
		return p.wait(now, first)
	}
	for n -= first; n > 0; n -= p.burst {
		p.lib.ReserveN(now, min(n, p.burst))
	}
	return 0
}

// wait returns after how long n messages, no more than the burst, are saved up.
func (p *rateLimiter) wait(now time.Time, n int) time.Duration {
	seconds := (float64(n) - p.lib.TokensAt(now)) / p.perSecond
	if seconds >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return max(time.Duration(math.Ceil(seconds*float64(time.Second))), 1)
}

// room returns how many messages may begin within d.
func (p *rateLimiter) room(now time.Time, d time.Duration) int {
	if p == nil {
		return unlimited
	}
	messages := p.lib.TokensAt(now) + p.perSecond*max(d, 0).Seconds() + epsilon
	return int(min(max(messages, 0), unlimited))
}
