package telemetry

import (
	"slices"
	"sync"
	"time"

	"tendril/queue"
	"tendril/worker"
)

// Datum is one metric of one interval for CloudWatch: a statistic set.
type Datum struct {
	// Name is the metric's name.
	Name string
	// Dimension and DimensionValue are its single dimension.
	Dimension, DimensionValue string
	// Unit is a unit of CloudWatch: "Count", "Milliseconds" or "None".
	Unit string
	// At is the end of the interval.
	At time.Time
	// Samples is the number of values in the set, 1 or more; Sum, Minimum and Maximum
	// describe them.
	Samples, Sum, Minimum, Maximum float64
}

// add adds the values of another set of the same metric.
func (d *Datum) add(o *Datum) {
	d.Samples += o.Samples
	d.Sum += o.Sum
	d.Minimum = min(d.Minimum, o.Minimum)
	d.Maximum = max(d.Maximum, o.Maximum)
}

// tally counts the deliveries from one queue in the current interval.
type tally struct {
	queue string

	mu                     sync.Mutex
	deliveries, failed     int64
	sum, shortest, longest time.Duration
}

// settled counts one delivery that the app answered or failed. A delivery that did
// not reach the app, or that it throttled, does not count.
func (t *tally) settled(s worker.Settled) {
	if s.Outcome != queue.Done && s.Outcome != queue.Failed {
		return
	}
	t.mu.Lock()
	if t.deliveries == 0 || s.Duration < t.shortest {
		t.shortest = s.Duration
	}
	t.longest = max(t.longest, s.Duration)
	t.sum += s.Duration
	t.deliveries++
	if s.Outcome == queue.Failed {
		t.failed++
	}
	t.mu.Unlock()
}

// endInterval appends the statistic sets of the interval to data and starts the next
// interval. A queue without deliveries has none.
func (t *tally) endInterval(data []Datum, at time.Time) []Datum {
	t.mu.Lock()
	deliveries, failed, sum, shortest, longest := t.deliveries, t.failed, t.sum, t.shortest, t.longest
	t.deliveries, t.failed, t.sum, t.shortest, t.longest = 0, 0, 0, 0, 0
	t.mu.Unlock()
	if deliveries == 0 {
		return data
	}
	duration := Datum{Dimension: "Queue", DimensionValue: t.queue, At: at, Samples: float64(deliveries)}
	processed := duration
	processed.Name, processed.Unit = "MessagesProcessed", "Count"
	processed.Sum, processed.Minimum, processed.Maximum = processed.Samples, 1, 1
	failures := duration // 1 for each failure and 0 for each success, so the average is the failure ratio
	failures.Name, failures.Unit, failures.Sum = "MessagesFailed", "Count", float64(failed)
	if failed == deliveries {
		failures.Minimum = 1
	}
	if failed > 0 {
		failures.Maximum = 1
	}
	duration.Name, duration.Unit = "Duration", "Milliseconds"
	duration.Sum, duration.Minimum, duration.Maximum = milliseconds(sum), milliseconds(shortest), milliseconds(longest)
	return append(data, processed, failures, duration)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// maxIntervals is the number of intervals that are kept while CloudWatch does not
// accept data.
const maxIntervals = 15

// mergeOldest merges the oldest intervals of data, which is ordered by time, until at
// most limit intervals are left. No value is lost.
func mergeOldest(data []Datum, limit int) []Datum {
	for {
		second, intervals := 0, min(len(data), 1)
		for i := len(data) - 1; i > 0; i-- {
			if !data[i].At.Equal(data[i-1].At) {
				second = i
				intervals++
			}
		}
		if intervals <= limit {
			return data
		}
		oldest, rest := data[:second], data[second:]
		for _, d := range oldest {
			d.At = data[second].At
			i := slices.IndexFunc(rest, func(o Datum) bool {
				return o.At.Equal(d.At) && o.Name == d.Name && o.DimensionValue == d.DimensionValue
			})
			if i >= 0 {
				rest[i].add(&d)
			} else {
				rest = slices.Insert(rest, 0, d)
			}
		}
		data = rest
	}
}
