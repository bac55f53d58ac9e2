package health

import (
	"math"
	"slices"
	"sync"
	"time"

	timewindow "tendril/internal/observe/window"
)

// Class is what became of a delivery.
type Class int

// The classes. The zero value is no answer.
const (
	NoAnswer  Class = iota // the app was reached and gave no answer in time, or a broken one
	Success                // the delivery is done, whatever status says so
	Client                 // HTTP 4xx
	Server                 // HTTP 5xx
	Other                  // any other status that is not a success, such as a redirect
	Unreached              // the app was not reached, for which it is not blamed
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
	}
	return Other
}

// counts are numbers of deliveries by class.
type counts [classes]int64

func (c counts) total() (n int64) {
	for _, one := range c {
		n += one
	}
	return n
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

// Latencies count deliveries by how long they took. The zero value counts none. A count that passes 2^32 starts
// again at 0, which does not matter to [Latencies.Since].
type Latencies [steps]uint32

// window counts the deliveries of the last five minutes. The zero value is
// empty. It is safe for concurrent use, and takes 20 KiB however much comes.
type window struct {
	mu     sync.Mutex
	recent *timewindow.Window[bucket]
	total  Latencies // since the start
}

type bucket struct {
	classes counts
	// latencies are of the deliveries that were answered.
	latencies Latencies
}

// count notes one delivery that ended now and took d.
func (w *window) count(c Class, d time.Duration, now time.Time) {
	if c < 0 || c >= classes {
		c = Other
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recent == nil {
		w.recent = timewindow.New[bucket](bucketTime, buckets)
	}
	b := w.recent.At(now)
	if b == nil {
		return // the clock was set back by more than the window
	}

	b.classes[c]++
	if c != NoAnswer && c != Unreached && c != Unsent {
		step := int(perDoubling * math.Log2(max(float64(d)/float64(time.Millisecond), 1)))
		b.latencies[min(step, steps-1)]++
		w.total[min(step, steps-1)]++
	}
}

// latencies returns those since the start.
func (w *window) latencies() Latencies {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// sum returns the counts of the five minutes before now.
func (w *window) sum(now time.Time) (sum bucket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for b := range w.recent.Recent(now) {
		for c, n := range b.classes {
			sum.classes[c] += n
		}
		sum.latencies.Add(&b.latencies)
	}
	return sum
}

// Add adds what another one counted.
func (l *Latencies) Add(more *Latencies) {
	for step, n := range more {
		l[step] += n
	}
}

// Since returns what was counted after an earlier state of l.
func (l *Latencies) Since(earlier *Latencies) (since Latencies) {
	for step, n := range l {
		since[step] = n - earlier[step]
	}
	return since
}

// Percentile returns the latency that a share, 0 to 1, of the deliveries did not exceed, to within a tenth of its
// value; 0 when nothing was counted.
func (l *Latencies) Percentile(share float64) time.Duration {
	var total, seen uint64
	for _, n := range l {
		total += uint64(n)
	}
	rank := max(uint64(math.Ceil(share*float64(total))), 1)
	for step, n := range l {
		if seen += uint64(n); seen >= rank {
			return time.Duration(float64(time.Millisecond) * math.Exp2((float64(step)+0.5)/perDoubling))
		}
	}
	return 0
}

// recent is how long an event of the past is mentioned.
const recent = 5 * time.Minute

// increases are how much counters rose in the last five minutes, by name.
type increases map[string]*increase

type increase struct {
	last, total int64
	marks       []mark
}

// mark is the total at one moment.
type mark struct {
	at    time.Time
	total int64
}

// within takes the value of a counter and returns by how much it rose in the
// last five minutes. before counts as its value before the first call. A
// counter that falls was reset to 0.
func (r increases) within(name string, before, value int64, now time.Time) int64 {
	c := r[name]
	if c == nil {
		c = &increase{last: before, marks: []mark{{now, 0}}}
		r[name] = c
	}
	c.total += max(value-c.last, 0)
	c.last = value
	if last := &c.marks[len(c.marks)-1]; len(c.marks) > 1 && now.Sub(last.at) < time.Second {
		last.total = c.total // asked often: one mark for each second is enough
	} else {
		c.marks = append(c.marks, mark{now, c.total})
	}
	// The last mark that is old enough is what to count from; the last of all is of this second.
	from := 0
	for now.Sub(c.marks[from+1].at) >= recent {
		from++
	}
	c.marks = slices.Delete(c.marks, 0, from)
	return c.total - c.marks[0].total
}
