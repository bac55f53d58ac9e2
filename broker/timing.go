package broker

import (
	"slices"
	"time"
)

// clock counts the nanoseconds since the broker was opened, by the monotonic
// clock, so that a step of the wall clock neither shortens nor lengthens a
// visibility timeout or a delay. What must outlive the process is written as
// Unix milliseconds, anchored at the wall clock's time of the opening.
type clock struct {
	start  time.Time
	anchor int64 // Unix milliseconds at start
}

func newClock() clock {
	now := time.Now()
	return clock{start: now, anchor: now.UnixMilli()}
}

// now returns the nanoseconds since the start.
func (c clock) now() int64 { return int64(time.Since(c.start)) }

// milli turns a reading of now into Unix milliseconds, rounded up: what is
// written never ends early.
func (c clock) milli(at int64) int64 {
	return c.anchor + (at+int64(time.Millisecond)-1)/int64(time.Millisecond)
}

// reading turns Unix milliseconds into a reading of now.
func (c clock) reading(milli int64) int64 { return (milli - c.anchor) * int64(time.Millisecond) }

// floor turns a reading of now into the Unix milliseconds that have passed.
func (c clock) floor(at int64) int64 { return c.anchor + at/int64(time.Millisecond) }

// stamp is the wall clock's time in Unix milliseconds, for what people read:
// the sent and first-receive times, and the age that retention looks at.
func stamp() int64 { return time.Now().UnixMilli() }

// date turns a stamp into a time; the zero time for 0.
func date(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli)
}

// alarm calls a function at the earliest of the times that it is set for. The
// queue's lock guards it.
type alarm struct {
	ring  func()
	timer *time.Timer
	at    int64 // 0 when it is not set
}

// set has the alarm ring after a wait, at a time in the caller's own measure.
func (a *alarm) set(at int64, wait time.Duration) {
	if a.at != 0 && a.at <= at {
		return
	}
	if a.at = at; a.timer == nil {
		a.timer = time.AfterFunc(max(0, wait), a.ring)
	} else {
		a.timer.Reset(max(0, wait))
	}
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// indexed is a heap, for [container/heap], whose items know their place in it.
type indexed[T any] struct {
	items  []T
	before func(a, b T) bool
	index  func(T) *int // where the item keeps its place
}

// first returns the first item; the zero value when there is none.
func (h *indexed[T]) first() (item T) {
	if len(h.items) > 0 {
		item = h.items[0]
	}
	return item
}

// Len implements [heap.Interface].
func (h *indexed[T]) Len() int { return len(h.items) }

// Less implements [heap.Interface].
func (h *indexed[T]) Less(i, j int) bool { return h.before(h.items[i], h.items[j]) }

// Swap implements [heap.Interface].
func (h *indexed[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.index(h.items[i]), *h.index(h.items[j]) = i, j
}

// Push implements [heap.Interface].
func (h *indexed[T]) Push(x any) {
	item := x.(T)
	*h.index(item) = len(h.items)
	h.items = append(h.items, item)
}

// Pop implements [heap.Interface].
func (h *indexed[T]) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	clear(h.items[last:])
	h.items = h.items[:last]
	return item
}

// delayGrid is the precision of delays in milliseconds: a delay ends at the
// next multiple, never early. It bounds what memory needs to know of delayed
// messages to a count for each of at most 90,000 instants, of those that Reschedule asks for, and of whole seconds
// (longGrid).
const delayGrid = 10

// gridUp rounds Unix milliseconds up to the grid.
func gridUp(milli int64) int64 { return (milli + delayGrid - 1) / delayGrid * delayGrid }

// delays counts the messages of a queue whose delay has not ended, by the
// instant at which it ends, in Unix milliseconds on the broker's clock. The
// messages themselves stay on disk until then.
type delays struct {
	count   map[int64]int
	order   []int64 // the instants, sorted
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

// sub takes one message out whose delay had not ended, because it left the
// queue.
func (d *delays) sub(due int64) {
	if d.count[due] > 0 {
		d.count[due]--
		d.delayed--
	}
}

// expire removes the delays that end no later than milli and returns how many
// messages that makes visible.
func (d *delays) expire(milli int64) (n int) {
	for len(d.order) > 0 && d.order[0] <= milli {
		n += d.count[d.order[0]]
		delete(d.count, d.order[0])
		d.order = d.order[1:]
	}
	d.delayed -= n
	return n
}

// maxFlight bounds what a wall clock that was set back could make of a
// deadline.
const maxFlight = 12 * time.Hour
