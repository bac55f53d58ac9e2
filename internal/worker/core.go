package worker

import (
	"context"
	"math"
	"sync"
	"time"
)

// callbackMutex calls the deferred event listeners on Unlock. The workers of a pool share one, so that any of them
// can use a freed slot immediately.
type callbackMutex struct {
	sync.Mutex
	deferred []func()
}

func (m *callbackMutex) Unlock() {
	deferred := m.deferred
	m.deferred = nil
	m.Mutex.Unlock()
	for _, f := range deferred {
		f()
	}
}

type phase uint8

const (
	notStarted phase = iota
	running
	draining
	aborting
	stopped
)

// core is the state shared by a worker's parts, which mu also guards. mu is not held during calls to the queue, the
// app or a listener.
type core struct {
	mu     *callbackMutex
	opts   Options
	events *Events
	counts Counts
	stats  statistics
	clock  clock
	window time.Duration // of batches, as configured
	margin time.Duration // deletes are not retried this close to the end of the visibility timeout

	phase    phase
	callCtx  context.Context
	endCalls context.CancelFunc
	workCtx  context.Context // deliveries; set by Run
	tasks    sync.WaitGroup

	limit, inWork int // deliveries: current limit, and in flight

	wake       chan struct{}
	sleepUntil time.Time
}

func newCore(o Options) *core {
	c := &core{opts: o, events: o.Events, mu: &callbackMutex{}, window: o.Batch.Window, limit: o.Concurrency,
		wake: make(chan struct{}, 1)}
	c.clock.interval = time.Second
	c.setVisibility(o.VisibilityTimeout)
	c.callCtx, c.endCalls = context.WithCancel(context.Background())
	if o.Pool != nil {
		c.mu = &o.Pool.mu
	}
	return c
}

// setVisibility never slows the maintenance loop down, because held messages keep the timeout of their receive.
func (c *core) setVisibility(timeout time.Duration) {
	c.opts.VisibilityTimeout = timeout
	c.opts.Batch.Window = min(c.window, timeout*3/8)
	c.margin = min(timeout/10, time.Second)
	c.clock.interval = min(c.clock.interval, max(timeout/16, 50*time.Millisecond))
}

// After an outage or a pause, a lower current limit stays.
func (c *core) setConcurrency(n int) {
	if c.limit == c.opts.Concurrency || c.limit > n {
		c.limit = n
	}
	c.opts.Concurrency = n
}

// wakeAt schedules a round no later than t. A zero t has no effect.
func (c *core) wakeAt(t time.Time) {
	if t.IsZero() || !t.Before(c.sleepUntil) {
		return
	}
	c.sleepUntil = t
	c.wakeNow()
}

func (c *core) wakeNow() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// lingerUntil returns the time until which an entry waits for others to share its call.
func (c *core) lingerUntil(now, hiddenUntil time.Time) time.Time {
	latest := hiddenUntil.Add(-2 * c.margin)
	if c.phase != running || latest.Before(now) {
		return now
	}
	return earlier(now.Add(c.opts.DeleteLinger), latest)
}

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

// notify calls listener after the lock is released. Copying event avoids an allocation if listener is nil.
func notify[E any](c *core, listener func(E), event E) {
	if listener != nil {
		e := event
		c.mu.deferred = append(c.mu.deferred, func() { listener(e) })
	}
}

// retryWait is an exponential back-off, shortened by up to half so that workers do not retry in step.
func retryWait(failures int, base, limit time.Duration, random float64) time.Duration {
	d := math.Min(float64(base)*math.Pow(2, float64(max(failures, 1)-1)), float64(limit))
	return time.Duration(d * (1 - random/2))
}

// clock detects stalls: late ticks, and a wall clock ahead of the monotonic one, which stands still while the machine
// is suspended.
type clock struct {
	interval time.Duration // longest interval between ticks
	last     time.Time
	stall    stall
}

type stall struct {
	from, until time.Time
	// hidden is the part that the monotonic clock missed.
	hidden time.Duration
}

// slack is the tolerance for late ticks and the wall clock.
const slack = time.Second

func (s stall) length() time.Duration { return s.until.Sub(s.from) + s.hidden }

func (c *clock) tick(now time.Time) stall {
	if c.last.IsZero() {
		c.last = now
		return stall{}
	}
	return c.advance(now, now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
}

// advance is like tick, with the time since the previous tick according to the monotonic and the wall clock.
func (c *clock) advance(now time.Time, mono, wall time.Duration) stall {
	if mono < 0 {
		return stall{} // now is before the previous tick
	}
	s := stall{from: c.last, until: now}
	c.last = now

	if ahead := wall - mono; ahead > slack {
		s.hidden = ahead
	}
	if s.hidden == 0 && mono <= c.interval+slack {
		return stall{}
	}
	c.stall = s
	return s
}

// earliestHidden is the earliest start of a receive's visibility timeouts: its response may have waited unread during
// a stall.
func (c *clock) earliestHidden(start, now time.Time, travel time.Duration) time.Time {
	t := now.Add(-min(now.Sub(start), travel))
	if s := c.stall; start.Before(s.until) && !now.Before(s.until) {
		t = earlier(t, later(s.from, start)).Add(-s.hidden)
	}
	return t
}
