package limit

import (
	"sort"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

// flight is one delivery in work: of a message, or of a batch.
type delivery struct {
	// at is when it began, counted from the limiter's beginning.
	at time.Duration
	// left is how many of its messages have no result yet.
	pending int32
	// era is the breaker's era in which it began.
	generation uint32
	// verdict is what its results said so far of the app's health.
	resultClass resultClass
	// done is true when one of its messages is done.
	done bool
	// permit is the adaptive limit's; nil without one.
	permit adaptivelimiter.Permit
}

// flights are the deliveries in work, in the order of their begin. A delivery
// ends without saying which one it was, only when it began: the nearest is meant.
type deliveryList struct {
	list []delivery
	// head is where they begin in list; what is before it is free.
	head int
	// batches counts those that lack more than one result.
	batches int
}

func (f *deliveryList) len() int { return len(f.list) - f.head }

// add takes up a delivery, which began no earlier than all that are there.
func (f *deliveryList) add(a delivery) {
	if len(f.list) == cap(f.list) && f.head > len(f.list)/2 {
		n := copy(f.list, f.list[f.head:])
		clear(f.list[n:])
		f.list, f.head = f.list[:n], 0
	}
	f.list = append(f.list, a)
	if a.pending > 1 {
		f.batches++
	}
}

// nearest returns the place of the delivery that began nearest to at; -1 when
// none is in work. Of batches that began at one time it is the one that lacks most
// results: should another have been meant, more seem to be in work than are, and
// never fewer.
func (f *deliveryList) nearestTo(at time.Duration) int {
	if f.len() == 0 {
		return -1
	}
	work := f.list[f.head:]
	i := sort.Search(len(work), func(i int) bool { return work[i].at >= at })
	if i == len(work) || i > 0 && at-work[i-1].at < work[i].at-at {
		i--
	}
	if f.batches > 0 {
		i = mostPending(work, i)
	}
	return f.head + i
}

// longest returns the place of the delivery that lacks most results among those
// that began at the same time as the one at i.
func mostPending(work []delivery, i int) int {
	at := work[i].at
	for i > 0 && work[i-1].at == at {
		i--
	}
	best := i
	for ; i < len(work) && work[i].at == at; i++ {
		if work[i].pending > work[best].pending {
			best = i
		}
	}
	return best
}

// hear takes in the result of one message of the delivery at place i and reports
// whether it was the last one. The app is well if it managed one message of a
// batch, and ill only if it managed none.
func (f *deliveryList) recordResult(i int, v resultClass, done bool) (ended bool) {
	a := &f.list[i]
	a.done = a.done || done
	if v == resultOK || a.resultClass == resultIgnored {
		a.resultClass = v
	}
	if a.pending--; a.pending == 1 {
		f.batches--
	}
	return a.pending == 0
}

// remove takes the delivery at place i out. It moves the shorter side.
func (f *deliveryList) remove(i int) delivery {
	gone := f.list[i]
	if i-f.head < f.len()/2 {
		copy(f.list[f.head+1:i+1], f.list[f.head:i])
		f.list[f.head] = delivery{}
		f.head++
		return gone
	}
	last := len(f.list) - 1
	copy(f.list[i:], f.list[i+1:])
	f.list[last] = delivery{}
	f.list = f.list[:last]
	return gone
}
