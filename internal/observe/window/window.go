package window

import (
	"iter"
	"time"
)

// Window is a ring of recent buckets. A nil Window is empty and must not be written to.
type Window[B any] struct {
	step time.Duration
	ring []bucket[B]
}

type bucket[B any] struct {
	number  int64 // steps since 1970
	content B
}

// New returns an empty window of n buckets, each one step long.
func New[B any](step time.Duration, n int) *Window[B] {
	return &Window[B]{step: step, ring: make([]bucket[B], n)}
}

// At returns the bucket for a time, or nil if the clock was set back by more than the window.
func (w *Window[B]) At(now time.Time) *B {
	number := w.number(now)
	b := &w.ring[number%int64(len(w.ring))]
	if b.number > number {
		return nil
	}
	if b.number < number {
		*b = bucket[B]{number: number}
	}
	return &b.content
}

// Recent returns the window's buckets up to the current one, in no particular order.
func (w *Window[B]) Recent(now time.Time) iter.Seq[*B] {
	return func(yield func(*B) bool) {
		if w == nil {
			return
		}
		last := w.number(now)
		for i := range w.ring {
			b := &w.ring[i]
			if b.number > last-int64(len(w.ring)) && b.number <= last && !yield(&b.content) {
				return
			}
		}
	}
}

func (w *Window[B]) number(t time.Time) int64 { return t.UnixNano() / int64(w.step) }
