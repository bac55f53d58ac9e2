package limit

import (
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"tendril/queue"
)

// Limiter decides when the next delivery may start. It is safe for concurrent use, and never waits for capacity.
type Limiter struct {
	opts Options

	mu sync.Mutex
	// last is the latest time of a call. Earlier times are replaced with it.
	last     time.Time
	rate     *rateLimiter
	adaptive adaptivelimiter.AdaptiveLimiter[any] // nil if not configured
	breaker  *breaker
	estimate estimate
	refused  Refused
	inWork   map[uint64]delivery
	permits  uint64
	events   deferredEvents
}

type delivery struct {
	startedAt  time.Time
	adaptive   adaptivelimiter.Permit // nil if not configured
	generation uint32
}

// New returns a limiter. opts may be nil.
func New(opts *Options) *Limiter {
	l := &Limiter{opts: opts.withDefaults(), inWork: map[uint64]delivery{}}
	l.estimate.batch = l.opts.Batch
	l.rate = newRateLimiter(l.opts.Rate, l.opts.Batch)
	if l.opts.Adaptive {
		most := l.opts.Concurrency
		l.adaptive = newAdaptive(1, most, min(initialLimit, most), l.limitChanged)
	}
	l.breaker = newBreaker(&l.opts, &l.events)
	return l
}

// Acquire requests a permit to deliver n messages in one request. Permit 0 is a refusal, which uses up no capacity:
// wait is the time until Acquire may succeed, or 0 if that depends on the next release; reason is "breaker",
// "concurrency" or "rate".
func (l *Limiter) Acquire(now time.Time, n int) (permit uint64, wait time.Duration, reason string) {
	l.mu.Lock()
	defer l.unlockAndNotify()
	now = l.advanceTo(now)

	if ok, wait := l.breaker.admits(now); !ok {
		l.refused.Breaker++
		return 0, wait, reasonBreaker
	}
	if !l.breaker.available() || l.adaptive != nil && !l.adaptive.CanAcquirePermit() {
		l.refused.Concurrency++
		return 0, 0, reasonConcurrency
	}
	if wait := l.rate.acquire(now, n); wait > 0 {
		l.refused.Rate++
		return 0, wait, reasonRate
	}

	l.estimate.batch = max(l.estimate.batch, n)
	d := delivery{startedAt: now, generation: l.breaker.acquire(now)}
	if l.adaptive != nil {
		d.adaptive, _ = l.adaptive.TryAcquirePermit()
	}
	l.permits++
	l.inWork[l.permits] = d
	return l.permits, 0, ""
}

// Release ends a delivery with the results of its messages. A second release has no effect. The result of a canceled
// delivery must wrap [context.Canceled] in Err, so that it does not count as a failure.
func (l *Limiter) Release(permit uint64, now time.Time, results ...queue.Result) {
	l.mu.Lock()
	defer l.unlockAndNotify()
	d, ok := l.inWork[permit]
	if !ok {
		return
	}
	delete(l.inWork, permit)

	now = l.advanceTo(now)

	took := now.Sub(d.startedAt)
	class, done := classifyAll(results)
	switch {
	case d.adaptive == nil:
	case done || class != resultIgnored && l.estimate.showsSpeed(took):
		d.adaptive.Record()
	default:
		d.adaptive.Drop()
	}

	if done {
		l.estimate.recordDuration(took)
	}
	l.breaker.release(now, d.generation, class)
}

// Room estimates how many messages can start by now + d, in batches of the maximum size. If n is 0, the worker
// should not receive. reason describes the strictest limit, or is "" without one.
func (l *Limiter) Room(now time.Time, d time.Duration) (n int, reason string) {
	l.mu.Lock()
	defer l.unlockAndNotify()
	now = l.advanceTo(now)
	n, reason = l.breaker.room(&l.estimate, now, d)
	if l.adaptive != nil {
		if room := l.estimate.room(l.adaptive.Limit(), l.adaptive.Inflight(), d); room < n {
			n, reason = room, reasonConcurrency
		}
	}
	if room := l.rate.room(now, d); room < n {
		n, reason = room, reasonRate
	}
	return n, reason
}

func (l *Limiter) advanceTo(now time.Time) time.Time {
	if now.After(l.last) {
		l.last = now
	}
	return l.last
}

func (l *Limiter) limitChanged(from, to int) {
	notify(&l.events, l.opts.Events.LimitChanged, Resized{From: from, To: to})
}

func (l *Limiter) unlockAndNotify() {
	events := l.events
	l.events = nil
	l.mu.Unlock()
	for _, call := range events {
		call()
	}
}

// Status returns a snapshot.
func (l *Limiter) Status() Status {
	l.mu.Lock()
	defer l.unlockAndNotify()
	s := Status{InWork: len(l.inWork), Refused: l.refused}
	if l.adaptive != nil {
		s.Limit = l.adaptive.Limit()
	}
	if l.rate != nil {
		s.Rate = float64(l.rate.Limit())
	}

	if b := l.breaker; b != nil {
		s.Breaker = b.state
		s.SlowStart = b.slowStartLimit
		s.Failing = b.lib.Metrics().FailureRate()
		if b.state == stateOpen {
			s.TrialAt = b.trialAt
		}
	}

	return s
}
