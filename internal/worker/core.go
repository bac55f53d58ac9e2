package worker

import (
	"context"
	"math"
	"sync"
	"time"
)

// callbackMutex calls event listeners after unlocking. The workers of a pool share one, so that any of them can use a
// freed slot immediately.
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

// core is the state shared by all parts of a worker. mu also guards the parts; it is not held during calls to the
// queue, the app or a listener.
type core struct {
	mu     *callbackMutex
	opts   Options // changed only by Tune and SetMaxReceives
	events *Events
	stats  statistics
	clock  clock
	margin time.Duration // deletes are not retried this close to the end of the visibility timeout

	phase    phase
	callCtx  context.Context // queue calls and probes
	endCalls context.CancelFunc
	workCtx  context.Context // deliveries; set by Run
	tasks    sync.WaitGroup

	limit, inWork int // deliveries: current limit, and in flight

	wake       chan struct{}
	sleepUntil time.Time
}

func newCore(o Options) *core {
	c := &core{opts: o, events: o.Events, mu: &callbackMutex{}, limit: o.Concurrency, wake: make(chan struct{}, 1)}
	c.clock.rhythm = time.Second
	c.setVisibility(o.VisibilityTimeout)
	c.callCtx, c.endCalls = context.WithCancel(context.Background())
	if o.Pool != nil {
		c.mu = &o.Pool.mu
	}
	return c
}

// setVisibility never slows down the maintenance loop, because held messages keep the timeout of their receive.
func (c *core) setVisibility(timeout time.Duration) {
	c.opts.VisibilityTimeout = timeout
	c.opts.Batch.Window = min(c.opts.Batch.Window, timeout*3/8)
	c.margin = min(timeout/10, time.Second)
	c.clock.rhythm = min(c.clock.rhythm, max(timeout/16, 50*time.Millisecond))
}

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

// notify calls listener after the lock is released. The copy avoids an allocation if listener is nil.
func notify[E any](c *core, listener func(E), event E) {
	if listener != nil {
		e := event
		c.mu.deferred = append(c.mu.deferred, func() { listener(e) })
	}
}

// retryWait returns an exponential back-off, shortened by up to half so that workers do not retry in step.
func retryWait(failures int, base, limit time.Duration, random float64) time.Duration {
	d := math.Min(float64(base)*math.Pow(2, float64(max(failures, 1)-1)), float64(limit))
	return time.Duration(d * (1 - random/2))
}

// clock detects stalls: late ticks, and jumps of the wall clock ahead of the monotonic clock, which stands still while
// the machine is suspended.
type clock struct {
	rhythm time.Duration // longest interval between ticks
	last   time.Time
	stall  stall
}

type stall struct {
	from, until time.Time
	// The monotonic clock missed this part of the stall.
	hidden time.Duration
}

// slack is the tolerance for late ticks and for the wall clock running ahead.
const slack = time.Second

func (c *clock) tick(now time.Time) (gap, hidden time.Duration) {
	if c.last.IsZero() {
		c.last = now
		return 0, 0
	}
	return c.step(now, now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
}

func (c *clock) step(now time.Time, mono, wall time.Duration) (gap, hidden time.Duration) {
	if mono < 0 {
		return 0, 0 // earlier than the previous tick
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

// began returns the earliest time at which the visibility timeouts can have started. The response may have waited
// unread during a stall.
func (c *clock) began(start, now time.Time, travel time.Duration) time.Time {
	t := now.Add(-min(now.Sub(start), travel))
	if s := c.stall; start.Before(s.until) && !now.Before(s.until) {
		t = earlier(t, later(s.from, start)).Add(-s.hidden)
	}
	return t
}
