package health

import (
	"math"
	"slices"
	"sync"
	"time"

	timewindow "tendril/internal/observe/window"
)

// Class is a kind of delivery result.
type Class int

// Classes of results.
const (
	NoAnswer Class = iota // missing, late or invalid response
	Success               // regardless of the HTTP status
	Client                // HTTP 4xx
	Server                // HTTP 5xx
	Other                 // such as a redirect, or failed in a batch response
	Unreached
	// FailedInside means that a function failed, or reported the message as failed, in a response with status 200.
	FailedInside
	// Unsent means that the app received nothing, because of the message or the network.
	Unsent
	classes
)

// ClassOf returns the class of an HTTP status, NoAnswer for 0. It ignores configured success codes.
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

type counts [classes]int64

func (c counts) total() (n int64) {
	for _, one := range c {
		n += one
	}
	return n
}

func (c counts) of(classes []Class) (n int64) {
	for _, class := range classes {
		n += c[class]
	}
	return n
}

type lastFailures [classes]Failure

func (f *lastFailures) latest(classes []Class) (last Failure) {
	for _, class := range classes {
		if f[class].number > last.number {
			last = f[class]
		}
	}
	return last
}

const (
	bucketTime = 10 * time.Second
	buckets    = 30
)

// The histogram covers 1 ms to about 12 days.
const (
	perDoubling = 4
	maxSteps    = 30 * perDoubling
)

// Latencies is a histogram of delivery durations. Its counts may wrap around; see [Latencies.Since].
type Latencies [maxSteps]uint32

// window counts five minutes of deliveries in less than 20 KiB. It is safe for concurrent use.
type window struct {
	mu     sync.Mutex
	recent *timewindow.Window[bucket]
	total  Latencies
	last   lastFailures
	failed int64 // since startup
}

type bucket struct {
	classes   counts
	latencies Latencies
}

func (w *window) count(c Class, d time.Duration, failed Failure, now time.Time) {
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
		return // the clock was set back too far
	}

	b.classes[c]++
	if c != Success {
		w.failed++
		failed.number = w.failed
		w.last[c] = failed
	}
	if c != NoAnswer && c != Unreached && c != Unsent {
		step := latencyStep(d)
		b.latencies[step]++
		w.total[step]++
	}
}

// forget drops the recent deliveries. The latencies since startup stay.
func (w *window) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recent = nil
}

func latencyStep(d time.Duration) int {
	doublings := math.Log2(max(float64(d)/float64(time.Millisecond), 1))
	return min(int(perDoubling*doublings), maxSteps-1)
}

func (w *window) latencies() Latencies {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

func (w *window) sum(now time.Time) (sum bucket, last lastFailures) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for b := range w.recent.Recent(now) {
		for c, n := range b.classes {
			sum.classes[c] += n
		}
		sum.latencies.Add(&b.latencies)
	}
	return sum, w.last
}

// Add adds another histogram.
func (l *Latencies) Add(more *Latencies) {
	for step, n := range more {
		l[step] += n
	}
}

// Since returns the counts added since earlier.
func (l *Latencies) Since(earlier *Latencies) (since Latencies) {
	for step, n := range l {
		since[step] = n - earlier[step]
	}
	return since
}

// Percentile returns the latency that a share of deliveries, 0 to 1, did not exceed, to within 10 percent.
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

const increasePeriod = 5 * time.Minute

type increases map[string]*increase

type increase struct {
	last, total int64
	marks       []mark
}

type mark struct {
	at    time.Time
	total int64
}

// observe returns the increase in the last five minutes. The first value is compared with before. A decrease is a reset
// and is ignored.
func (r increases) observe(name string, before, value int64, now time.Time) int64 {
	c := r[name]
	if c == nil {
		c = &increase{last: before, marks: []mark{{now, 0}}}
		r[name] = c
	}
	c.total += max(value-c.last, 0)
	c.last = value
	c.mark(now)
	return c.total - c.marks[0].total
}

func (c *increase) mark(now time.Time) {
	newest := &c.marks[len(c.marks)-1]
	if len(c.marks) > 1 && now.Sub(newest.at) < time.Second {
		newest.total = c.total
	} else {
		c.marks = append(c.marks, mark{now, c.total})
	}

	outdated := 0
	for now.Sub(c.marks[outdated+1].at) >= increasePeriod {
		outdated++
	}
	c.marks = slices.Delete(c.marks, 0, outdated)
}
