package broker

import "container/heap"

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
func (d *delays) end(milli int64) (n int) {
	for len(d.order) > 0 && d.order[0] <= milli {
		due := heap.Pop(&d.order).(int64)
		n += d.count[due]
		delete(d.count, due)
	}
	d.delayed -= n
	return n
}

func (d *delays) clear() { *d = delays{} }

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
