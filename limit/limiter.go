package limit

import (
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"tendril/queue"
)

// Limiter decides when the app may be given the next message. Its methods are
// safe for concurrent use and take no longer than a lock and some arithmetic. Make
// one with [New]; there is nothing to close.
type Limiter struct {
	opts Options

	mu sync.Mutex
	// last is the latest time of any call. Time never runs backwards below this point,
	// whatever the order in which callers get the lock.
	last     time.Time
	rate     *rateLimiter
	adaptive *adaptive
	breaker  *breaker
	inWork   int // deliveries
	estimate estimate
	refused  Refused
	// events are reported when the lock is released.
	events []any
}

// New returns a limiter.
func New(opts *Options) *Limiter {
	l := &Limiter{opts: opts.withDefaults()}
	l.estimate.batch = l.opts.Batch
	l.rate = newRateLimiter(l.opts.Rate, l.opts.Batch)
	if l.opts.Adaptive {
		most := l.opts.Concurrency
		l.adaptive = newAdaptive(1, most, min(initialLimit, most), l.limitChanged)
	}
	l.breaker = newBreaker(l.opts.Breaker, l.opts.Concurrency, l.emit)
	return l
}

// Acquire asks to start one delivery of n messages at now: 1, or the size of a
// batch, which goes to the app as one request. release must be called once, when the
// delivery has ended; it is nil for a refusal. A refusal consumes nothing: wait is the
// time after which to ask again, 0 for after the next release, and reason is one of the
// Reason constants. A batch that is larger than the burst of the rate starts when the
// whole burst is available, and the next deliveries wait longer. An n below 1 is
// allowed and consumes nothing.
//
// release takes the time and the results of all messages of the delivery. When the
// worker canceled it, Err must be or wrap [context.Canceled], so that the app is not
// blamed. A second call does nothing.
func (l *Limiter) Acquire(now time.Time, n int) (
	release func(now time.Time, results ...queue.Result), wait time.Duration, reason string,
) {
	if n < 1 {
		return func(time.Time, ...queue.Result) {}, 0, ""
	}
	l.mu.Lock()
	defer l.unlockAndNotify()
	now = l.advanceTo(now)
	if ok, wait := l.breaker.admits(now); !ok {
		l.refused.Breaker++
		return nil, wait, ReasonBreaker
	}
	if !l.breaker.available() || !l.adaptive.available() {
		l.refused.Concurrency++
		return nil, 0, ReasonConcurrency
	}
	if wait := l.rate.acquire(now, n); wait > 0 {
		l.refused.Rate++
		return nil, wait, ReasonRate
	}
	l.estimate.recordBatch(n)
	l.inWork++
	p := &permit{limiter: l, startedAt: now, generation: l.breaker.acquire(now), adaptive: l.adaptive.acquire()}
	return p.release, 0, ""
}

// permit is the right to one delivery, of a message or of a batch.
type permit struct {
	limiter    *Limiter
	startedAt  time.Time
	generation uint32                 // of the breaker
	adaptive   adaptivelimiter.Permit // nil without an adaptive limit
	released   bool
}

func (p *permit) release(now time.Time, results ...queue.Result) {
	l := p.limiter
	l.mu.Lock()
	defer l.unlockAndNotify()
	if p.released {
		return
	}
	p.released = true
	l.inWork--
	now = l.advanceTo(now)
	took := now.Sub(p.startedAt)
	class, done := classifyAll(results)
	l.adaptive.release(p.adaptive, done || class != resultIgnored && l.estimate.showsSpeed(took))
	if done {
		l.estimate.recordDuration(took)
	}
	l.breaker.release(now, p.generation, class)
}

// Room returns how many messages may start between now and now + d, as far as the
// limiter knows: free places, those that become free at the app's speed, and what
// the rate allows. It assumes batches of the maximum size. 0 means that there is no
// point in receiving. Without limits the result is larger than any use. reason is the
// Reason constant of the strictest limit; "" without limits.
func (l *Limiter) Room(now time.Time, d time.Duration) (n int, reason string) {
	l.mu.Lock()
	defer l.unlockAndNotify()
	now = l.advanceTo(now)
	n, reason = l.breaker.room(&l.estimate, now, d)
	if room := l.adaptive.room(&l.estimate, d); room < n {
		n, reason = room, ReasonConcurrency
	}
	if room := l.rate.room(now, d); room < n {
		n, reason = room, ReasonRate
	}
	return n, reason
}

// SetRate changes the rate from now on, in messages per second; 0 means no limit.
func (l *Limiter) SetRate(now time.Time, perSecond float64) {
	l.mu.Lock()
	defer l.unlockAndNotify()
	now = l.advanceTo(now)
	perSecond = normalizeRate(perSecond)
	if l.rate == nil || perSecond == 0 {
		l.rate = newRateLimiter(perSecond, l.opts.Batch)
		return
	}
	l.rate.set(now, perSecond)
}

// advanceTo moves the limiter's time forward and returns it.
func (l *Limiter) advanceTo(now time.Time) time.Time {
	if now.After(l.last) {
		l.last = now
	}
	return l.last
}

func (l *Limiter) limitChanged(from, to int) { l.emit(LimitChanged{From: from, To: to}) }

// emit keeps an event until the lock is released.
func (l *Limiter) emit(event any) { l.events = append(l.events, event) }

// unlockAndNotify releases the lock and reports the events that were emitted
// under it.
func (l *Limiter) unlockAndNotify() {
	events := l.events
	l.events = nil
	l.mu.Unlock()
	for _, event := range events {
		l.opts.Events.notify(event)
	}
}

// Status is a snapshot of a limiter.
type Status struct {
	// Rate is the maximum number of messages per second; 0 for no limit.
	Rate float64
	// InWork is the number of deliveries in work; a batch counts as one.
	InWork int
	// Limit is the adaptive limit of deliveries in work; 0 for none.
	Limit int
	// SlowStart is the limit of deliveries in work during the breaker's slow start;
	// 0 at other times.
	SlowStart int
	// Breaker is the breaker's state: "closed", "open" or "half-open"; "" without a
	// breaker.
	Breaker string
	// Failing is the share of deliveries that failed within the breaker's window, 0
	// to 1. It changes with results only, not as time passes.
	Failing float64
	// TrialAt is when the open breaker lets a trial start; zero in other states.
	TrialAt time.Time
	// Refused counts the refusals since the limiter was made.
	Refused Refused
}

// Refused counts how often [Limiter.Acquire] refused, by reason. One message may be
// refused many times.
type Refused struct {
	Breaker, Concurrency, Rate int64
}

// Status returns the current state.
func (l *Limiter) Status() Status {
	l.mu.Lock()
	defer l.unlockAndNotify()
	s := Status{InWork: l.inWork, Limit: l.adaptive.limit(), Refused: l.refused}
	if l.rate != nil {
		s.Rate = l.rate.perSecond
	}
	if b := l.breaker; b != nil {
		s.Breaker, s.SlowStart, s.Failing = b.state, b.slowStartLimit, b.lib.Metrics().FailureRate()
		if b.state == stateOpen {
			s.TrialAt = b.trialAt
		}
	}
	return s
}
