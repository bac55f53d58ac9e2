package limit

import (
	"cmp"
	"math"
	"time"
)

// The reasons for a refusal.
const (
	reasonBreaker     = "breaker"
	reasonConcurrency = "concurrency"
	reasonRate        = "rate"
)

// Options configure [New]. The zero value, and a nil *Options, limit nothing.
// Values outside their range are brought to the nearest bound.
type Options struct {
	// Rate is the maximum number of messages per second, fractions allowed; 0
	// means no limit. Unused capacity is saved up to a tenth of a second's worth, or to
	// one Batch if that is more, but never to more than a second's worth, and always to
	// at least one message.
	Rate float64
	// Concurrency is the maximum number of deliveries in work, 1 or more; 0 means
	// 50. The worker enforces it: here it is where a slow start ends, and the upper
	// bound of the adaptive limit.
	Concurrency int
	// Batch is the maximum number of messages in one delivery, 1 or more; 0 means
	// 1. [Limiter.Room] uses it to turn deliveries into messages. A larger batch is
	// accepted and remembered.
	Batch int
	// Adaptive makes the concurrency follow the app's speed: it falls when answers
	// take longer than they used to, and rises when they do not. It starts at 10, or
	// at Concurrency if that is lower. An app that is overloaded from the first message
	// on looks slow by nature: set Concurrency for it instead.
	Adaptive bool
	// Breaker stops deliveries to an app that fails; nil for none.
	Breaker *Breaker
	// Events are the listeners; nil for none.
	Events *Events
}

// Breaker configures when deliveries stop because the app fails, and when they
// start again. The zero value is valid.
type Breaker struct {
	// FailureRatio is the part of deliveries that must fail for the breaker to
	// open, 0.01 to 1 in steps of 0.01; 0 means 0.5. It counts once 10 deliveries have
	// ended within Window.
	FailureRatio float64
	// Window is the time over which deliveries are counted, 1 s or more; 0 means
	// 30 s. It slides in tenths.
	Window time.Duration
	// Delay is how long the breaker stays open before a trial; 0 means 5 s. It
	// doubles each time the app fails again before it is back at full concurrency, up
	// to 60 s, or Delay if that is longer.
	Delay time.Duration
}

// withDefaults returns a copy with every default filled in and every value within
// its range.
func (o *Options) withDefaults() Options {
	var s Options
	if o != nil {
		s = *o
	}
	s.Concurrency, s.Batch = max(cmp.Or(s.Concurrency, 50), 1), max(s.Batch, 1)
	s.Rate = normalizeRate(s.Rate)
	if s.Breaker != nil {
		s.Breaker = s.Breaker.withDefaults()
	}
	if s.Events == nil {
		s.Events = &Events{}
	}
	return s
}

// normalizeRate returns 0, no limit, for a value that is not a rate.
func normalizeRate(perSecond float64) float64 {
	if math.IsNaN(perSecond) || math.IsInf(perSecond, 1) {
		return 0
	}
	return max(perSecond, 0)
}

func (b *Breaker) withDefaults() *Breaker {
	s := *b
	if !(s.FailureRatio > 0) {
		s.FailureRatio = 0.5
	}
	s.FailureRatio = min(max(s.FailureRatio, 0.01), 1)
	s.Window = max(cmp.Or(s.Window, 30*time.Second), time.Second)
	if s.Delay <= 0 {
		s.Delay = 5 * time.Second
	}
	return &s
}
