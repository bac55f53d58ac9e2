package worker

import (
	"context"
	"math"
	"sync"
	"time"
)

// callbackMutex is a mutex that calls the event listeners after it is released. Workers of a pool share one, so that
// a slot freed by one worker can go to another at once.
type callbackMutex struct {
	sync.Mutex
	deferred []func() // added by notify since Lock
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

// core holds the options, phase and counts that all parts of a worker share. Its lock guards the state of every part,
// and is never held during calls to the queue, the app or a listener.
type core struct {
	mu     *callbackMutex
	opts   Options // changed only by Tune and SetMaxReceives
	events *Events
	stats  statistics
	clock  clock
	margin time.Duration // how long before the end of the visibility deletes stop

	phase    phase
	callCtx  context.Context // for queue calls and probes
	endCalls context.CancelFunc
	workCtx  context.Context // for deliveries; set by Run
	tasks    sync.WaitGroup

	limit, inWork int // deliveries: current limit, and running

	wake       chan struct{} // triggers an early round
	sleepUntil time.Time     // when the maintenance loop wakes by itself
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

// wakeAt schedules a maintenance round at t if the next one would be later.
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

// lingerUntil returns the latest time to send an entry that may wait for others, with a margin before the visibility
// of its message ends.
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

// notify queues a call of the listener for when the lock is released.
func notify[E any](c *core, listener func(E), event E) {
	if listener != nil {
		e := event // allocate only if there is a listener
		c.mu.deferred = append(c.mu.deferred, func() { listener(e) })
	}
}

// retryWait returns the wait after a number of consecutive failures: base, doubled each time up to limit. Jitter
// takes off up to half, so that workers that failed together do not retry together.
func retryWait(failures int, base, limit time.Duration, random float64) time.Duration {
	d := math.Min(float64(base)*math.Pow(2, float64(max(failures, 1)-1)), float64(limit))
	return time.Duration(d * (1 - random/2))
}

// clock detects that the process did not run. The monotonic clock advances while a process is stopped by a signal but
// not while its machine is suspended. The wall clock advances in both cases, but may also be set. A stall is
// therefore a monotonic step longer than the rhythm of the ticks, or a wall clock running ahead of the monotonic one.
type clock struct {
	rhythm time.Duration // longest interval between ticks of a healthy process
	last   time.Time
	stall  stall
}

type stall struct {
	from, until time.Time
	// hidden is the part that the monotonic clock did not measure.
	hidden time.Duration
}

// slack is the tolerated delay of a tick and lead of the wall clock.
const slack = time.Second

// tick must be called at least once per rhythm. It returns how long the process stalled since the previous tick, and
// how much of that the monotonic clock missed; both are 0 without a stall.
func (c *clock) tick(now time.Time) (gap, hidden time.Duration) {
	if c.last.IsZero() {
		c.last = now
		return 0, 0
	}
	return c.step(now, now.Sub(c.last), now.Round(0).Sub(c.last.Round(0)))
}

func (c *clock) step(now time.Time, mono, wall time.Duration) (gap, hidden time.Duration) {
	if mono < 0 {
		return 0, 0 // now was taken before the previous tick
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

// began returns the earliest time at which messages of a receive, called at start, may have been hidden. The answer
// spent at most travel on the way, but may have lain unread during a stall.
func (c *clock) began(start, now time.Time, travel time.Duration) time.Time {
	t := now.Add(-min(now.Sub(start), travel))
	if s := c.stall; start.Before(s.until) && !now.Before(s.until) {
		t = earlier(t, later(s.from, start)).Add(-s.hidden)
	}
	return t
}
