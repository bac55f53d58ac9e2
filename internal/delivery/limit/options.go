package limit

import (
	"cmp"
	"math"
	"time"
)

const (
	reasonBreaker     = "breaker"
	reasonConcurrency = "concurrency"
	reasonRate        = "rate"
)

// Options configure a [Limiter]. Nil and the zero value mean no limits. Values out of range are clamped.
type Options struct {
	// Rate is the maximum number of messages per second; 0 means no limit. Unused capacity accumulates up to one
	// message, the messages of a tenth of a second, or one Batch (at most the messages of a second), whichever is
	// largest.
	Rate float64
	// Concurrency is the worker's limit of deliveries in flight; 0 means 50. A slow start ends there, and the adaptive
	// limit does not exceed it.
	Concurrency int
	// Batch is the maximum number of messages per delivery; 0 means 1.
	Batch int
	// Adaptive adapts the concurrency to the app's speed, starting at 10: it falls when responses are slower than
	// usual, and rises otherwise. It does not suit an app that is overloaded from the start.
	Adaptive bool
	// Breaker stops deliveries to a failing app; may be nil.
	Breaker *Breaker
	Events  *Events
}

// Breaker configures when deliveries to a failing app stop and resume. The zero value is valid.
type Breaker struct {
	// FailureRatio is the share of failed deliveries that opens the breaker, 0.01 to 1 in steps of 0.01; 0 means 0.5.
	// It applies once 10 deliveries have ended within Window.
	FailureRatio float64
	// Window is the period in which deliveries are counted, at least 1 s; 0 means 30 s. It advances in steps of a tenth
	// of its length.
	Window time.Duration
	// Delay is how long the breaker stays open before a trial; 0 means 5 s. Until the app is back at full concurrency,
	// it doubles each time the breaker opens again, up to 60 s or the configured delay, whichever is longer.
	Delay time.Duration
}

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
