package health

import (
	"math"
	"sync"
	"time"
)

// Class is what became of a delivery.
type Class int

// The classes. The zero value is no answer.
const (
	// NoAnswer: the app was reached and gave no answer in time, or a broken one.
	NoAnswer Class = iota
	// Success: the delivery is done, whatever status says so.
	Success
	// Client and Server: HTTP 4xx and 5xx.
	Client
	Server
	// Other: any other status that is no success, a redirect for one.
	Other
	// Unreached: the app was not reached, for which it is not blamed.
	Unreached
	// FailedInside: a function was run and did not do its work: it ended with an
	// error, or named the message as failed.
	FailedInside
	// Unsent: the delivery failed before the app was given any of it, for a reason
	// that lies in the message or on the way to it.
	Unsent
	classes
)

// ClassOf returns the class of an HTTP status; 0 is no answer. Where other
// statuses than 2xx are a success, whoever counts has to say so.
func ClassOf(status int) Class {
	switch {
	case status == 0:
		return NoAnswer
	case status/100 == 2:
		return Success
	case status/100 == 4:
		return Client
	case status/100 == 5:
		return Server
	default:
		return Other
	}
}

// A window is a ring of buckets of ten seconds over five minutes.
const (
	bucketTime = 10 * time.Second
	buckets    = 30
)

// Latencies are counted in steps of a fourth of a doubling, from 1 ms to about
// 12 days.
const (
	perDoubling = 4
	steps       = 30 * perDoubling
)

// Window counts the deliveries of the last five minutes. The zero value is
// empty. It is safe for concurrent use, and takes 20 KiB however much comes.
type Window struct {
	mu   sync.Mutex
	ring [buckets]bucket
}

type bucket struct {
	// tick is the number of the ten seconds that this is about.
	tick      int64
	classes   [classes]int64
	latencies [steps]uint32
}

// Requests are what a window holds.
type Requests struct {
	// The counts of each class.
	Success, Client, Server, Other, NoAnswer, Unreached, FailedInside, Unsent int64
	// Percentiles are of the deliveries that were answered.
	Percentiles Percentiles
	// Limit is the longest that a delivery may take; 0 when not known. A window
	// does not know it: whoever reads it fills it in.
	Limit time.Duration
}

// Total is how many deliveries there were.
func (r Requests) Total() int64 {
	return r.Success + r.Client + r.Server + r.Other + r.NoAnswer + r.Unreached + r.FailedInside + r.Unsent
}

// Percentiles are those that Elastic Beanstalk shows, to within a tenth of
// their value; all 0 when nothing was answered.
type Percentiles struct {
	P10, P50, P75, P85, P90, P95, P99, P999 time.Duration
}

// Count notes one delivery that ended now and took d.
func (w *Window) Count(c Class, d time.Duration, now time.Time) {
	if c < 0 || c >= classes {
		c = Other
	}
	tick := now.UnixNano() / int64(bucketTime)
	w.mu.Lock()
	defer w.mu.Unlock()
	b := &w.ring[tick%buckets]
	switch {
	case b.tick > tick:
		return // the clock was set back by more than the window
	case b.tick < tick:
		*b = bucket{tick: tick}
	}
	b.classes[c]++
	if c != NoAnswer && c != Unreached && c != Unsent {
		b.latencies[stepOf(d)]++
	}
}

// Requests returns what was counted in the five minutes before now.
func (w *Window) Requests(now time.Time) Requests {
	tick := now.UnixNano() / int64(bucketTime)
	var sum bucket
	w.mu.Lock()
	for i := range w.ring {
		b := &w.ring[i]
		if b.tick <= tick-buckets || b.tick > tick {
			continue
		}
		for c, n := range b.classes {
			sum.classes[c] += n
		}
		for s, n := range b.latencies {
			sum.latencies[s] += n
		}
	}
	w.mu.Unlock()
	return Requests{
		Success: sum.classes[Success], Client: sum.classes[Client], Server: sum.classes[Server],
		Other: sum.classes[Other], NoAnswer: sum.classes[NoAnswer], Unreached: sum.classes[Unreached],
		FailedInside: sum.classes[FailedInside], Unsent: sum.classes[Unsent],
		Percentiles: percentiles(&sum.latencies),
	}
}

func stepOf(d time.Duration) int {
	ms := float64(d) / float64(time.Millisecond)
	if ms <= 1 {
		return 0
	}
	return min(int(perDoubling*math.Log2(ms)), steps-1)
}

// middle is the latency that a step stands for.
func middle(step int) time.Duration {
	return time.Duration(float64(time.Millisecond) * math.Exp2((float64(step)+0.5)/perDoubling))
}

func percentiles(latencies *[steps]uint32) Percentiles {
	var total uint64
	for _, n := range latencies {
		total += uint64(n)
	}
	if total == 0 {
		return Percentiles{}
	}
	at := func(share float64) time.Duration {
		rank := max(uint64(math.Ceil(share*float64(total))), 1)
		var seen uint64
		for step, n := range latencies {
			if seen += uint64(n); seen >= rank {
				return middle(step)
			}
		}
		return middle(steps - 1)
	}
	return Percentiles{at(0.1), at(0.5), at(0.75), at(0.85), at(0.9), at(0.95), at(0.99), at(0.999)}
}
