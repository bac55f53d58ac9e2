package limit

import (
	"math"
	"sync"
	"time"

	"tendril/queue"
)

// unlimited is the room where nothing limits it.
const unlimited = math.MaxInt32

// The reasons for a refusal.
const (
	ReasonBreaker     = "breaker"
	ReasonConcurrency = "concurrency"
	ReasonRate        = "rate"
)

// Limiter decides when the app may be given the next message. Its methods are
// safe for concurrent use and take no longer than a lock and some arithmetic. Make
// one with [New]; it has nothing to close.
type Limiter struct {
	opts Options

	mu sync.Mutex
	// born is when the limiter was made; last is the latest time it was called
	// with. Times never run backwards beyond this point, whatever the order in
	// which callers get the lock.
	createdAt, last time.Time
	rate            *rateLimiter
	adaptive        *adaptive
	breaker         *breaker
	deliveryList    deliveryList
	estimate        estimate
	refused         Refused
	// told are the events that wait for the end of the lock.
	told []any
}

// New returns a limiter. Options outside their range are brought into it.
func New(opts *Options) *Limiter {
	l := &Limiter{opts: opts.withDefaults()}
	l.estimate.batch = l.opts.Batch
	l.rate = newRateLimiter(l.opts.Rate, l.opts.Batch)
	l.adaptive = newAdaptive(l.opts.Adaptive, func(from, to int) { l.tell(LimitChanged{From: from, To: to}) })
	l.breaker = newBreaker(l.opts.Breaker, l.opts.Concurrency, l.tell)
	return l
}

// Allow takes the right to begin one delivery of n messages at now: 1, or the
// size of a batch, which goes to the app as one request. Each of the n needs a
// [Limiter.Done] later. A refusal takes nothing: wait says after how long to ask
// again, 0 after the next Done, and reason is one of the Reason constants. A
// batch that is larger than what the rate can save up begins when all is saved
// up, and the next ones wait for longer. An n below 1 is allowed and takes nothing.
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
	if !l.breaker.free() || !l.adaptive.free() {
		l.refused.Concurrency++
		return false, 0, ReasonConcurrency
	}
	if wait := l.rate.begin(now, n); wait > 0 {
		l.refused.Rate++
		return false, wait, ReasonRate
	}
	l.estimate.begun(n)
	l.deliveryList.add(delivery{at: now.Sub(l.createdAt), pending: int32(min(n, math.MaxInt32)), generation: l.breaker.take(now), permit: l.adaptive.take()})
	return true, 0, ""
}

// Done tells that the delivery of one allowed message ended at now, how, and how
// long it took. Of a batch, each message is told with the time of the whole. A
// delivery that the worker cut off should say so by an Err that is, or wraps,
// [context.Canceled]: it is no failure of the app. Done for what was never allowed
// is ignored as long as nothing is in work.
func (l *Limiter) Done(now time.Time, res queue.Result, took time.Duration) {
	l.mu.Lock()
	defer l.unlockAndNotify()
	now = l.advanceTo(now)
	i := l.deliveryList.nearestTo(now.Sub(l.createdAt) - took)
	if i < 0 {
		return
	}
	if ended := l.deliveryList.recordResult(i, classify(&res), res.Outcome == queue.Done); ended {
		l.finish(now, l.deliveryList.remove(i), took)
	}
}

// land ends a delivery whose results are all there.
func (l *Limiter) finish(now time.Time, f delivery, took time.Duration) {
	l.adaptive.release(f.permit, f.done || f.resultClass != resultIgnored && l.estimate.showsSpeed(took))
	if f.done {
		l.estimate.recordDuration(took)
	}
	l.breaker.release(now, f.generation, f.resultClass)
}

// Room returns how many messages may begin between now and now + d, as far as
// the limiter knows: free places, those that will come free at the app's pace,
// and what the rate allows. Batches are taken to be as large as they may be. 0
// means that receiving any would be in vain. Without limits it is larger than any
// use. reason is one of the Reason constants, that of the limit which leaves least;
// "" without limits.
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

// SetRate changes the rate from now on, in messages a second; 0 means no limit.
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

// advance moves the limiter's time forward and returns it.
func (l *Limiter) advanceTo(now time.Time) time.Time {
	if l.createdAt.IsZero() {
		l.createdAt, l.last = now, now
	}
	if now.After(l.last) {
		l.last = now
	}
	return l.last
}

// tell keeps an event for the end of the lock.
func (l *Limiter) tell(event any) { l.told = append(l.told, event) }

// unlock lets go of the lock and tells the listeners what happened under it.
func (l *Limiter) unlockAndNotify() {
	told := l.told
	l.told = nil
	l.mu.Unlock()
	for _, event := range told {
		l.opts.Events.call(event)
	}
}
