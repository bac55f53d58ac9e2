package worker

import (
	"context"
	"math"
	"sync"
	"time"
)

// callbackMutex is a lock that calls the listeners after it is released. A worker
// has one of its own. Those of a pool share the pool's, so that a slot that one of
// them leaves can be given to another at once.
type callbackMutex struct {
	sync.Mutex
	deferred []func() // what notify was given since Lock
}

// Unlock releases the lock and then calls the listeners.
func (m *callbackMutex) Unlock() {
	deferred := m.deferred
	m.deferred = nil
	m.Mutex.Unlock()
	for _, f := range deferred {
		f()
	}
}

// phase is how far Run is.
type phase uint8

const (
	notStarted phase = iota
	running
	draining
	aborting
	stopped
)

// core is what all parts of one worker share: its options, how far it is, and what
// it counts. The lock guards it, and the state of every part. It is never held during a
// call of the queue, the app or a listener.
type core struct {
	mu     *callbackMutex
	opts   Options // only Tune and SetMaxReceives change it
	events *Events
	stats  statistics
	clock  clock
	margin time.Duration // before the end of a visibility: deletes are no longer worth sending

	phase    phase
	callCtx  context.Context // of the calls of the queue and of probes
	endCalls context.CancelFunc
	workCtx  context.Context // of the deliveries; set by Run
	tasks    sync.WaitGroup  // every goroutine of Run

	limit, inWork int // deliveries: how many may run at once now, and do

	wake       chan struct{} // asks the maintenance loop for an early round
	sleepUntil time.Time     // when that loop wakes by itself

	// start begins the deliveries and calls of the queue that may begin now, receive the
	// receives.
	start, receive func(now time.Time)
	// stalled is called when the process stood still.
	stalled func(gap, hidden time.Duration)
}

// proceed begins whatever may begin now.
func (c *core) proceed(now time.Time) {
	c.start(now)
	c.receive(now)
}

// wakeAt asks the maintenance loop for a round at t, if it would sleep longer.
func (c *core) wakeAt(t time.Time) {
	if t.IsZero() || !t.Before(c.sleepUntil) {
		return
	}
	c.sleepUntil = t
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// observe looks at the clocks.
func (c *core) observe(now time.Time) {
	if gap, hidden := c.clock.tick(now); gap > 0 {
		c.stalled(gap, hidden)
	}
}

// call makes one call of the queue without the lock, and then takes its results.
func (c *core) call(do func(context.Context) []error, answered func(errs []error, start, now time.Time)) {
	c.tasks.Go(func() {
		start := time.Now()
		ctx, cancel := context.WithTimeout(c.callCtx, callTimeout)
		errs := do(ctx)
		cancel()
		now := time.Now()
		c.mu.Lock()
		c.observe(now)
		answered(errs, start, now)
		c.proceed(now)
		c.mu.Unlock()
	})
}

// callTimeout bounds one delete or change of visibility.
const callTimeout = 20 * time.Second

// lingerUntil returns when an entry that may wait for others is sent at the latest: not in
// the last of its message's visibility.
func (c *core) lingerUntil(now, hiddenUntil time.Time) time.Time {
	due, latest := now.Add(c.opts.DeleteLinger), hiddenUntil.Add(-2*c.margin)
	if c.phase != running || latest.Before(now) {
		return now
	}
	if latest.Before(due) {
		return latest
	}
	return due
}

// notify calls a listener with an event after the lock is released.
func notify[E any](c *core, listener func(E), event E) {
	if listener != nil {
		e := event // only a copy that is needed is allocated
		c.mu.deferred = append(c.mu.deferred, func() { listener(e) })
	}
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// retryWait returns how long to wait after a number of failures in a row (1 is the
// first) before asking once more: base, doubled each time up to limit, of
// which chance takes off up to a half, so that workers that failed together
// do not come back together.
func retryWait(failures int, base, limit time.Duration, random float64) time.Duration {
	d := math.Min(float64(base)*math.Pow(2, float64(max(failures, 1)-1)), float64(limit))
	return time.Duration(d * (1 - random/2))
}
