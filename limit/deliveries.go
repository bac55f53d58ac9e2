package limit

import (
	"sort"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

// delivery is one delivery in work: of a message, or of a batch.
type delivery struct {
	// startedAt is when it started, counted from the limiter's first call.
	startedAt time.Duration
	// pending is how many of its messages have no result yet.
	pending int32
	// generation is the breaker's generation in which it started.
	generation uint32
	// class is what its results say so far about the app's health.
	class resultClass
	// done is true when one of its messages is done.
	done bool
	// permit is the adaptive limit's; nil without one.
	permit adaptivelimiter.Permit
}

// deliveryList holds the deliveries in work, ordered by their start. The end of a
// delivery says when it started but not which one it was, so the delivery with the
// nearest start is taken.
type deliveryList struct {
	list []delivery
	// head is the index of the first delivery in list; the space before it is free.
	head int
	// batches counts those with more than one result pending.
	batches int
}

func (l *deliveryList) len() int { return len(l.list) - l.head }

// add appends a delivery, which must not have started before any other in the
// list.
func (l *deliveryList) add(d delivery) {
	if len(l.list) == cap(l.list) && l.head > len(l.list)/2 {
		n := copy(l.list, l.list[l.head:])
		clear(l.list[n:])
		l.list, l.head = l.list[:n], 0
	}
	l.list = append(l.list, d)
	if d.pending > 1 {
		l.batches++
	}
}

// nearestTo returns the index of the delivery that started nearest to the given
// time, or -1 when none is in work. Of batches that started at the same time it is
// the one with most results pending. If the result belongs to another one, more
// deliveries seem to be in work than are, never fewer.
func (l *deliveryList) nearestTo(startedAt time.Duration) int {
	if l.len() == 0 {
		return -1
	}
	inWork := l.list[l.head:]
	i := sort.Search(len(inWork), func(i int) bool { return inWork[i].startedAt >= startedAt })
	if i == len(inWork) || i > 0 && startedAt-inWork[i-1].startedAt < inWork[i].startedAt-startedAt {
		i--
	}
	if l.batches > 0 {
		i = mostPending(inWork, i)
	}
	return l.head + i
}

// mostPending returns the index of the delivery with most results pending among
// those that started at the same time as the one at index i.
func mostPending(inWork []delivery, i int) int {
	startedAt := inWork[i].startedAt
	for i > 0 && inWork[i-1].startedAt == startedAt {
		i--
	}
	best := i
	for ; i < len(inWork) && inWork[i].startedAt == startedAt; i++ {
		if inWork[i].pending > inWork[best].pending {
			best = i
		}
	}
	return best
}

// recordResult adds the result of one message to the delivery at index i and
// reports whether it was the last one. A batch is ok if one of its messages is, and
// failed only if none is.
func (l *deliveryList) recordResult(i int, class resultClass, done bool) (ended bool) {
	d := &l.list[i]
	d.done = d.done || done
	if class == resultOK || d.class == resultIgnored {
		d.class = class
	}
	if d.pending--; d.pending == 1 {
		l.batches--
	}
	return d.pending == 0
}

// remove removes the delivery at index i by moving the shorter side of the list.
func (l *deliveryList) remove(i int) delivery {
	removed := l.list[i]
	if i-l.head < l.len()/2 {
		copy(l.list[l.head+1:i+1], l.list[l.head:i])
		l.list[l.head] = delivery{}
		l.head++
		return removed
	}
	last := len(l.list) - 1
	copy(l.list[i:], l.list[i+1:])
	l.list[last] = delivery{}
	l.list = l.list[:last]
	return removed
}
