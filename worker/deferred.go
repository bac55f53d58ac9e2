package worker

import (
	"slices"
	"time"
)

// How soon a message that the deliverer postponed is asked for again: when it
// named no time, and the bounds of the time that it may name.
const (
	postponeUsual    = 100 * time.Millisecond
	postponeShortest = 10 * time.Millisecond
	postponeLongest  = time.Minute
)

// How many postponed messages are kept, and how many times PrefetchBytes their
// bodies may have. The youngest beyond that is returned, but not to come
// again before surplusPause: else the queue would hand it out in a circle,
// and count a receive each time.
const (
	maxPostponed      = 1000
	postponedPerBytes = 8
	surplusPause      = postponeLongest
)

// deferredHeap is the messages that were postponed. The first one to be asked for
// again is at its top.
type deferredHeap struct {
	list  []*held
	bytes int
}

// Len, Less, Swap, Push and Pop make it a [heap.Interface].
func (d *deferredHeap) Len() int           { return len(d.list) }
func (d *deferredHeap) Less(i, j int) bool { return d.list[i].again.Before(d.list[j].again) }

// Swap exchanges two messages and keeps their places right.
func (d *deferredHeap) Swap(i, j int) {
	d.list[i], d.list[j] = d.list[j], d.list[i]
	d.list[i].place, d.list[j].place = i, j
}

// Push appends a *held.
func (d *deferredHeap) Push(x any) {
	h := x.(*held)
	h.place = len(d.list)
	d.list = append(d.list, h)
	d.bytes += len(h.msg.Body)
}

// Pop takes the last one off.
func (d *deferredHeap) Pop() any {
	n := len(d.list) - 1
	h := d.list[n]
	d.list[n] = nil
	d.list = d.list[:n]
	d.bytes -= len(h.msg.Body)
	return h
}

// next returns when the first one is to be asked for again, zero when there is none.
func (d *deferredHeap) next() time.Time {
	if len(d.list) == 0 {
		return time.Time{}
	}
	return d.list[0].again
}

// youngest returns the one that was postponed for the first time last.
func (d *deferredHeap) youngest() *held {
	return slices.MaxFunc(d.list, func(x, y *held) int { return x.postponedAt.Compare(y.postponedAt) })
}
