package broker

import (
	"container/heap"
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

// floor turns a reading of now into the Unix milliseconds that have passed.
func (c clock) floor(at int64) int64 { return c.anchor + at/int64(time.Millisecond) }

// deadlines is a heap of the messages in flight, the one whose visibility
// timeout ends first on top. It is written out because a queue in full flow
// pushes and removes hundreds of thousands a second.
type deadlines struct{ heap []*message }

func (d *deadlines) len() int { return len(d.heap) }

// first returns the message whose flight ends first; nil when there is none.
func (d *deadlines) first() *message {
	if len(d.heap) == 0 {
		return nil
	}
	return d.heap[0]
}

func (d *deadlines) push(m *message) {
	m.index = len(d.heap)
	d.heap = append(d.heap, m)
	d.up(m.index)
}

// fix restores the order after the deadline of m changed.
func (d *deadlines) fix(m *message) {
	if !d.down(m.index) {
		d.up(m.index)
	}
}

func (d *deadlines) remove(m *message) {
	last := len(d.heap) - 1
	i := m.index
	if i != last {
		d.swap(i, last)
	}
	d.heap[last] = nil
	d.heap = d.heap[:last]
	if i != last && !d.down(i) {
		d.up(i)
	}
	m.index = -1
}

func (d *deadlines) swap(i, j int) {
	d.heap[i], d.heap[j] = d.heap[j], d.heap[i]
	d.heap[i].index, d.heap[j].index = i, j
}

func (d *deadlines) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if d.heap[parent].until <= d.heap[i].until {
			return
		}
		d.swap(i, parent)
		i = parent
	}
}

// down reports whether the message moved.
func (d *deadlines) down(i int) bool {
	from := i
	for {
		least := 2*i + 1
		if least >= len(d.heap) {
			return i != from
		}
		if right := least + 1; right < len(d.heap) && d.heap[right].until < d.heap[least].until {
			least = right
		}
		if d.heap[i].until <= d.heap[least].until {
			return i != from
		}
		d.swap(i, least)
		i = least
	}
}

// delayGrid is the precision of delays in milliseconds: a delay ends at the
// next multiple, never early. It bounds what memory needs to know of delayed
// messages to a count for each of at most 90,000 instants.
const delayGrid = 10

// gridUp rounds Unix milliseconds up to the grid.
func gridUp(milli int64) int64 { return (milli + delayGrid - 1) / delayGrid * delayGrid }

// delays counts the messages of a queue whose delay has not ended, by the
// instant at which it ends, in Unix milliseconds on the broker's clock. The
// messages themselves stay on disk until then.
type delays struct {
	count   map[int64]int
	order   milliHeap
	delayed int
}

func (d *delays) add(due int64, n int) {
	if d.count == nil {
		d.count = map[int64]int{}
	}
	if d.count[due] == 0 {
		heap.Push(&d.order, due)
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

// next returns the instant at which the next delay ends; false when none does.
func (d *delays) next() (int64, bool) {
	if len(d.order) == 0 {
		return 0, false
	}
	return d.order[0], true
}

// end removes the delays that end no later than milli and returns how many
// messages that makes visible.
func (d *delays) expire(milli int64) (n int) {
	for len(d.order) > 0 && d.order[0] <= milli {
		due := heap.Pop(&d.order).(int64)
		n += d.count[due]
		delete(d.count, due)
	}
	d.delayed -= n
	return n
}

// milliHeap implements [heap.Interface].
type milliHeap []int64

func (h milliHeap) Len() int           { return len(h) }
func (h milliHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h milliHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *milliHeap) Push(x any) { *h = append(*h, x.(int64)) }

// Pop implements [heap.Interface].
func (h *milliHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
