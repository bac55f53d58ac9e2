package limit

import (
	"math"
	"sync"
	"time"

	"tendril/queue"
)

// unlimited is the answer of [Limiter.Room] when nothing limits it.
const unlimited = math.MaxInt32

// The reasons for a refusal.
const (
	ReasonBreaker     = "breaker"
	ReasonConcurrency = "concurrency"
	ReasonRate        = "rate"
)

// Limiter decides when the app may be given the next message. Its methods are
// safe for concurrent use and take no longer than a lock and some arithmetic. Make
// one with [New]; there is nothing to close.
type Limiter struct {
	opts Options

	mu sync.Mutex
	// createdAt is the time of the first call; last is the latest time of any call.
	// Time never runs backwards below this point, whatever the order in which callers
	// get the lock.
	createdAt, last time.Time
	rate            *rateLimiter
	adaptive        *adaptive
	breaker         *breaker
	deliveries      deliveryList
	estimate        estimate
	refused         Refused
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

// Allow asks to start one delivery of n messages at now: 1, or the size of a
// batch, which goes to the app as one request. Each of the n messages needs a
// [Limiter.Done] later. A refusal consumes nothing: wait is the time after which to
// ask again, 0 for after the next Done, and reason is one of the Reason constants. A
// batch that is larger than the burst of the rate starts when the whole burst is
// available, and the next deliveries wait longer. An n below 1 is allowed and
// consumes nothing.
func (l *Limiter) Allow(now time.Time, n int) (ok bool, wait time.Duration, reason string) {
	if n < 1 {
		return true, 0, ""
	}
	l.mu.Lock()
	defer l.unlockAndNotify()
	now = l.advanceTo(now)
	if ok, wait := l.breaker.admits(now); !ok {
		l.refused.Breaker++
		return false, wait, ReasonBreaker
	}
	if !l.breaker.available() || !l.adaptive.available() {
		l.refused.Concurrency++
		return false, 0, ReasonConcurrency
	}
	if wait := l.rate.acquire(now, n); wait > 0 {
		l.refused.Rate++
		return false, wait, ReasonRate
	}
	l.estimate.recordBatch(n)
	l.deliveries.add(delivery{
		startedAt:  now.Sub(l.createdAt),
		pending:    int32(min(n, math.MaxInt32)),
		generation: l.breaker.acquire(now),
		permit:     l.adaptive.acquire(),
	})
	return true, 0, ""
}

// Done reports that the delivery of one allowed message ended at now, with which
// result, and how long it took. Each message of a batch is reported with the
// duration of the whole. When the worker canceled the delivery, Err must be or wrap
// [context.Canceled], so that the app is not blamed. A Done without an Allow is
// ignored as long as nothing is in work.
func (l *Limiter) Done(now time.Time, res queue.Result, took time.Duration) {
	l.mu.Lock()
	defer l.unlockAndNotify()
	now = l.advanceTo(now)
	i := l.deliveries.nearestTo(now.Sub(l.createdAt) - took)
	if i < 0 {
		return
	}
	if ended := l.deliveries.recordResult(i, classify(&res), res.Outcome == queue.Done); ended {
		l.finish(now, l.deliveries.remove(i), took)
	}
}

// finish ends a delivery whose results are complete.
func (l *Limiter) finish(now time.Time, d delivery, took time.Duration) {
	l.adaptive.release(d.permit, d.done || d.class != resultIgnored && l.estimate.showsSpeed(took))
	if d.done {
		l.estimate.recordDuration(took)
	}
	l.breaker.release(now, d.generation, d.class)
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
	if l.createdAt.IsZero() {
		l.createdAt, l.last = now, now
	}
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
