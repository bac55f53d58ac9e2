package broker

import (
	"slices"
	"sync"
	"time"
)

// clock counts nanoseconds since the broker was opened, so setting the wall clock changes no timeouts or delays.
// Stored times are Unix milliseconds, based on the wall clock at opening.
type clock struct {
	start  time.Time
	anchor int64
}

func newClock() clock {
	now := time.Now()
	return clock{start: now, anchor: now.UnixMilli()}
}

func (c clock) now() int64 { return int64(time.Since(c.start)) }

// milli converts to Unix milliseconds, rounded up so that stored deadlines are not early.
func (c clock) milli(at int64) int64 {
	return c.anchor + (at+int64(time.Millisecond)-1)/int64(time.Millisecond)
}

func (c clock) reading(milli int64) int64 { return (milli - c.anchor) * int64(time.Millisecond) }

func (c clock) floor(at int64) int64 { return c.anchor + at/int64(time.Millisecond) }

func (c clock) nowMilli() int64 { return c.floor(c.now()) }

func (c clock) nowRoundedUp() int64 { return c.milli(c.now()) }

// stamp returns the wall-clock time in Unix milliseconds, for retention and displayed times.
func stamp() int64 { return time.Now().UnixMilli() }

func date(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli)
}

// alarm calls ring once, at the earliest time set. The lock guards it, and is held during ring. ring may also be called
// early or after stop, so it must check the state.
type alarm struct {
	lock  sync.Locker
	ring  func()
	timer *time.Timer
	at    int64 // 0 if not set
}

// set makes the alarm ring after wait, unless an earlier time is set. at is that time, in the same unit in all calls.
func (a *alarm) set(at int64, wait time.Duration) {
	if a.at != 0 && a.at <= at {
		return
	}
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(max(0, wait), a.onTimer)
	} else {
		a.timer.Reset(max(0, wait))
	}
}

func (a *alarm) setUnlessSet(wait time.Duration) { a.set(1, wait) }

func (a *alarm) onTimer() {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.at = 0
	a.ring()
}

func (a *alarm) stop() {
	a.at = 0
	if a.timer != nil {
		a.timer.Stop()
	}
}

// indexed is a [heap.Interface] whose items store their index, so that any can be removed.
type indexed[T any] struct {
	items  []T
	before func(a, b T) bool
	index  func(T) *int
}

func (h *indexed[T]) first() (item T) {
	if len(h.items) > 0 {
		item = h.items[0]
	}
	return item
}

func (h *indexed[T]) Len() int { return len(h.items) }

func (h *indexed[T]) Less(i, j int) bool { return h.before(h.items[i], h.items[j]) }

func (h *indexed[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.index(h.items[i]), *h.index(h.items[j]) = i, j
}

func (h *indexed[T]) Push(x any) {
	item := x.(T)
	*h.index(item) = len(h.items)
	h.items = append(h.items, item)
}

func (h *indexed[T]) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	clear(h.items[last:])
	h.items = h.items[:last]
	return item
}

// Due times are rounded up to delayGrid milliseconds, which limits the number of distinct ones in memory.
const delayGrid = 10

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// delays counts delayed messages by due time in Unix milliseconds.
type delays struct {
	count   map[int64]int
	order   []int64
	delayed int
}

func (d *delays) add(due int64, n int) {
	if d.count == nil {
		d.count = map[int64]int{}
	}
	if at, found := slices.BinarySearch(d.order, due); !found {
		d.order = slices.Insert(d.order, at, due)
	}
	d.count[due] += n
	d.delayed += n
}

func (d *delays) sub(due int64) {
	if d.count[due] > 0 {
		d.count[due]--
		d.delayed--
	}
}

func (d *delays) expire(milli int64) (n int) {
	for len(d.order) > 0 && d.order[0] <= milli {
		n += d.count[d.order[0]]
		delete(d.count, d.order[0])
		d.order = d.order[1:]
	}
	d.delayed -= n
	return n
}

// maxFlight limits how much longer a visibility timeout becomes if the wall clock is set back while the broker is
// closed.
const maxFlight = 12 * time.Hour
