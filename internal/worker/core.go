package worker

import (
	"context"
	"math"
	"sync"
	"time"
)

// callbackMutex is a lock that calls the listeners after it is released. A worker
// has one of its own. The workers of a pool share the pool's, so that a slot that one of
// them frees can be given to another at once.
type callbackMutex struct {
	sync.Mutex
	deferred []func() // the calls that notify took since Lock
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

// core is shared by all parts of one worker: its options, its phase and its
// counts. The lock guards it, and the state of every part. It is never held during a
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
}

func newCore(o Options) *core {
	c := &core{opts: o, events: o.Events, mu: &callbackMutex{}, limit: o.Concurrency, wake: make(chan struct{}, 1),
		margin: min(o.VisibilityTimeout/10, time.Second)}
	c.clock.rhythm = clamp(o.VisibilityTimeout/16, 50*time.Millisecond, time.Second)
	c.callCtx, c.endCalls = context.WithCancel(context.Background())
	if o.Pool != nil {
		c.mu = &o.Pool.mu
	}
	return c
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

// lingerUntil returns when an entry that may wait for others is sent at the latest: not in
// the last of its message's visibility.
func (c *core) lingerUntil(now, hiddenUntil time.Time) time.Time {
	latest := hiddenUntil.Add(-2 * c.margin)
	if c.phase != running || latest.Before(now) {
		return now
	}
	return earlier(now.Add(c.opts.DeleteLinger), latest)
}

// earlier and later return one of two times.
func earlier(s, t time.Time) time.Time {
	if t.Before(s) {
		return t
	}
	return s
}

func later(s, t time.Time) time.Time {
	if t.After(s) {
		return t
	}
	return s
}

// notify calls a listener with an event after the lock is released.
func notify[E any](c *core, listener func(E), event E) {
	if listener != nil {
		e := event // only a copy that is needed is allocated
		c.mu.deferred = append(c.mu.deferred, func() { listener(e) })
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

// clock notices when the process stood still. The monotonic clock goes on while a process is
// stopped by a signal but not while its machine is suspended; the wall clock goes on in both
// but may also be set. So a gap shows as a monotonic step longer than the rhythm of the
// ticks, or as a wall clock that ran ahead of the monotonic one.
type clock struct {
	rhythm time.Duration // the longest time between two ticks of a healthy process
	last   time.Time     // the last tick
	stall  stall         // the latest time of standing still
}

// stall is one time of standing still.
type stall struct {
	from, until time.Time
	// hidden is how much longer it was than the monotonic clock shows.
	hidden time.Duration
}

// slack is how late a tick, and how far ahead a wall clock, may be.
const slack = time.Second

// tick takes the present time, at least once in each rhythm. It returns how long
// the process stood still before it, and how much of that the monotonic clock
// does not show; both are 0 when it did not.
func (c *clock) tick(now time.Time) (gap, hidden time.Duration) {
	if c.last.IsZero() {
		c.last = now
		return 0, 0
	}
	return c.step(now, now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
}

// step is tick for given steps of the two clocks since the last one.
func (c *clock) step(now time.Time, mono, wall time.Duration) (gap, hidden time.Duration) {
	if mono < 0 {
		return 0, 0 // a time taken before the last tick's
	}
	last := c.last
	c.last = now
	if ahead := wall - mono; ahead > slack {
		hidden = ahead
	}
	if hidden == 0 && mono <= c.rhythm+slack {
		return 0, 0
	}
	c.stall = stall{from: last, until: now, hidden: hidden}
	return mono + hidden, hidden
}

// began returns when the visibility of messages began at the earliest that a
// receive called at start brought back now, when that receive spent at most
// travel on the way. A stall in between may have happened while the answer
// lay unread.
func (c *clock) began(start, now time.Time, travel time.Duration) time.Time {
	t := now.Add(-min(now.Sub(start), travel))
	if s := c.stall; start.Before(s.until) && !now.Before(s.until) {
		t = earlier(t, later(s.from, start)).Add(-s.hidden)
	}
	return t
}
