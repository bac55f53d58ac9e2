package limit

import (
	"math"
	"time"
)

// Defaults of [Options], [Adaptive] and [Breaker].
const (
	DefaultConcurrency = 50
	DefaultStart       = 10
	DefaultShare       = 0.5
	DefaultMinRequests = 10
	DefaultWindow      = 30 * time.Second
	DefaultDelay       = 5 * time.Second
	DefaultMaxDelay    = 60 * time.Second
	DefaultTrials      = 1
)

// Options configure [New]. The zero value, and a nil *Options, limit nothing.
// Values outside their range are brought to the nearest bound.
type Options struct {
	// Rate is the most messages a second, fractions allowed; 0 means no limit.
	// What was not used is saved up for a tenth of a second's worth, or for one Batch
	// where that is more and within a second's worth, and for at least one message.
	Rate float64
	// Concurrency is the most deliveries that the worker has in work, 1 or more;
	// 0 means 50. The worker keeps it by itself: here it is where a slow start
	// ends, and the default of Adaptive.Max.
	Concurrency int
	// Batch is the most messages in one delivery, 1 or more; 0 means 1, and larger
	// ones that come all the same are learnt. It turns deliveries into messages in
	// [Limiter.Room].
	Batch int
	// Adaptive finds the concurrency that the app can take; nil for none.
	Adaptive *Adaptive
	// Breaker stops deliveries to an app that fails; nil for none.
	Breaker *Breaker
	// Events are the listeners; nil for none.
	Events *Events
}

// Adaptive configures a concurrency that follows the app's speed: it falls when
// answers take longer than they used to, and rises when they do not. The zero
// value is valid.
type Adaptive struct {
	// Min and Max bound the deliveries in work at once. Min is 1 or more and 0
	// means 1; Max is Min or more and 0 means Options.Concurrency.
	Min, Max int
	// Start is the limit at the beginning, Min to Max; 0 means 10. An app that
	// is overloaded from the first message on looks slow by nature: start below
	// what it can surely take.
	Start int
}

// Breaker configures when deliveries stop because the app fails, and how they
// begin again. The zero value is valid.
type Breaker struct {
	// Share is the part of deliveries that must fail for the breaker to open,
	// 0.01 to 1 in steps of 0.01; 0 means 0.5.
	Share float64
	// MinRequests is how many deliveries must have ended within Window before
	// Share counts, 1 or more; 0 means 10.
	MinRequests int
	// Window is over how long deliveries are counted, 1 s or more; 0 means 30 s.
	// It slides in tenths.
	Window time.Duration
	// Delay is how long the breaker stays open before a trial; 0 means 5 s. It
	// doubles each time the app fails again before it is back at full
	// concurrency, up to MaxDelay; 0 there means 60 s.
	Delay, MaxDelay time.Duration
	// Trials is how many deliveries try the app out after Delay, all at once,
	// 1 or more; 0 means 1. All must succeed for the breaker to close, and one
	// failure opens it again.
	Trials int
}

// settled returns a copy with every default filled in and every value within
// its range.
func (o *Options) withDefaults() Options {
	var s Options
	if o != nil {
		s = *o
	}
	if s.Concurrency == 0 {
		s.Concurrency = DefaultConcurrency
	}
	s.Concurrency, s.Batch = max(s.Concurrency, 1), max(s.Batch, 1)
	s.Rate = normalizeRate(s.Rate)
	if s.Adaptive != nil {
		s.Adaptive = s.Adaptive.withDefaults(s.Concurrency)
	}
	if s.Breaker != nil {
		s.Breaker = s.Breaker.withDefaults()
	}
	if s.Events == nil {
		s.Events = &Events{}
	}
	return s
}

// settledRate makes no limit of what is no rate.
func normalizeRate(perSecond float64) float64 {
	if !(perSecond > 0) || math.IsInf(perSecond, 1) {
		return 0
	}
	return perSecond
}

func (a *Adaptive) withDefaults(concurrency int) *Adaptive {
	s := *a
	s.Min = max(s.Min, 1)
	if s.Max == 0 {
		s.Max = concurrency
	}
	s.Max = max(s.Max, s.Min)
	if s.Start == 0 {
		s.Start = DefaultStart
	}
	s.Start = min(max(s.Start, s.Min), s.Max)
	return &s
}

func (b *Breaker) withDefaults() *Breaker {
	s := *b
	if !(s.Share > 0) {
		s.Share = DefaultShare
	}
	s.Share = min(max(s.Share, 0.01), 1)
	if s.MinRequests == 0 {
		s.MinRequests = DefaultMinRequests
	}
	s.MinRequests = max(s.MinRequests, 1)
	if s.Window == 0 {
		s.Window = DefaultWindow
	}
	s.Window = max(s.Window, time.Second)
	if s.Delay <= 0 {
		s.Delay = DefaultDelay
	}
	if s.MaxDelay == 0 {
		s.MaxDelay = DefaultMaxDelay
	}
	s.MaxDelay = max(s.MaxDelay, s.Delay)
	if s.Trials == 0 {
		s.Trials = DefaultTrials
	}
	s.Trials = max(s.Trials, 1)
	return &s
}
