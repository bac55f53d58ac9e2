package worker

import (
	"math"
	"time"

	"tendril/queue"
)

// maxHidden is the longest a message may stay hidden, counted from its receive.
const maxHidden = queue.MaxVisibility

// Backoff is a delay that grows with the attempts of one message: it starts
// at Min, doubles Doublings times, then grows by the last step, up to Max.
// With Min 10 s, Max 300 s and 3 doublings: 10, 20, 40, 80, 160, 240, 300, 300 s.
type Backoff struct {
	// Min is the delay after the first attempt; 0 turns the back-off off.
	Min time.Duration
	// Max bounds the delay; 0 means 12 h.
	Max time.Duration
	// Doublings is how often the delay doubles before it grows linearly; 0
	// means that it grows by Min each time.
	Doublings int
	// Jitter, 0 to 1, is the share of the delay that chance may take off; 0
	// means none, 1 anything down to no delay at all.
	Jitter float64
}

// on reports whether the back-off is configured.
func (b Backoff) on() bool { return b.Min > 0 }

// delay returns the wait after the given attempt (1 is the first), for a
// random number in [0,1).
func (b Backoff) delay(attempt int, random float64) time.Duration {
	n := float64(max(attempt, 1) - 1)
	doubled := math.Min(n, float64(max(b.Doublings, 0)))
	d := float64(b.Min) * math.Pow(2, doubled) * (1 + n - doubled)
	d = math.Min(d, float64(or(b.Max, maxHidden)))
	d *= 1 - math.Min(math.Max(b.Jitter, 0), 1)*random
	return time.Duration(d)
}

// retryWait returns how long to wait after a number of failures in a row (1 is the
// first) before asking once more: base, doubled each time up to limit, of
// which chance takes off up to a half, so that workers that failed together
// do not come back together.
func retryWait(failures int, base, limit time.Duration, random float64) time.Duration {
	d := math.Min(float64(base)*math.Pow(2, float64(max(failures, 1)-1)), float64(limit))
	return time.Duration(d * (1 - random/2))
}
