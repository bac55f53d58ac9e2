package telemetry

import (
	"slices"
	"sync"
	"time"

	"tendril/queue"
	"tendril/worker"
)

// Datum is one figure of one interval for CloudWatch: a statistic set.
type Datum struct {
	// Name is the metric's name.
	Name string
	// Dimension and DimensionValue are its one dimension.
	Dimension, DimensionValue string
	// Unit is one of CloudWatch's: "Count", "Milliseconds" or "None".
	Unit string
	// At is the end of the interval.
	At time.Time
	// Samples is how many values the set stands for, 1 or more; Sum, Minimum and
	// Maximum are theirs.
	Samples, Sum, Minimum, Maximum float64
}

// absorb adds the values of another figure of the same metric.
func (d *Datum) absorb(o *Datum) {
	d.Samples += o.Samples
	d.Sum += o.Sum
	d.Minimum = min(d.Minimum, o.Minimum)
	d.Maximum = max(d.Maximum, o.Maximum)
}

// tally counts the deliveries from one queue since the last cut.
type tally struct {
	queue string

	mu               sync.Mutex
	judged, failed   int64
	sum, least, most time.Duration
}

// settled counts one delivery that the app has judged. An app that was never
// reached, or that asked to slow down, has judged nothing.
func (t *tally) settled(s worker.Settled) {
	if s.Outcome != queue.Done && s.Outcome != queue.Failed {
		return
	}
	t.mu.Lock()
	if t.judged == 0 || s.Duration < t.least {
		t.least = s.Duration
	}
	t.most = max(t.most, s.Duration)
	t.sum += s.Duration
	t.judged++
	if s.Outcome == queue.Failed {
		t.failed++
	}
	t.mu.Unlock()
}

// cut appends the figures since the last cut and begins anew. A queue without
// deliveries has none.
func (t *tally) cut(data []Datum, at time.Time) []Datum {
	t.mu.Lock()
	judged, failed, sum, least, most := t.judged, t.failed, t.sum, t.least, t.most
	t.judged, t.failed, t.sum, t.least, t.most = 0, 0, 0, 0, 0
	t.mu.Unlock()
	if judged == 0 {
		return data
	}
	d := Datum{Dimension: "Queue", DimensionValue: t.queue, At: at, Samples: float64(judged)}
	processed := d
	processed.Name, processed.Unit, processed.Sum, processed.Minimum, processed.Maximum = "MessagesProcessed", "Count", d.Samples, 1, 1
	failures := d // a 1 for each that failed and a 0 for each other: the average is the failing share
	failures.Name, failures.Unit, failures.Sum = "MessagesFailed", "Count", float64(failed)
	if failed == judged {
		failures.Minimum = 1
	}
	if failed > 0 {
		failures.Maximum = 1
	}
	d.Name, d.Unit = "Duration", "Milliseconds"
	d.Sum, d.Minimum, d.Maximum = milliseconds(sum), milliseconds(least), milliseconds(most)
	return append(data, processed, failures, d)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// keptIntervals is how many intervals wait for CloudWatch to take figures again.
const keptIntervals = 15

// shorten merges the oldest intervals of data, which is in the order of time,
// until at most most of them are left. No value is lost; those of the oldest
// intervals are then told as one.
func shorten(data []Datum, most int) []Datum {
	for {
		oldest, second, intervals := ends(data)
		if intervals <= most {
			return data
		}
		for i := oldest; i < second; i++ {
			data = mergeInto(data, i, second)
		}
		data = slices.DeleteFunc(data, func(d Datum) bool { return d.Samples == 0 })
	}
}

// ends returns where the oldest and the second interval begin, and how many
// there are.
func ends(data []Datum) (oldest, second, intervals int) {
	for i := range data {
		if i == 0 || !data[i].At.Equal(data[i-1].At) {
			intervals++
			if intervals == 2 {
				second = i
			}
		}
	}
	return 0, second, intervals
}

// mergeInto moves the figure at i to its like in the interval that begins at
// from, or changes its time to that interval's. What was moved is left with no
// samples.
func mergeInto(data []Datum, i, from int) []Datum {
	at := data[from].At
	for j := from; j < len(data) && data[j].At.Equal(at); j++ {
		if data[j].Name == data[i].Name && data[j].DimensionValue == data[i].DimensionValue {
			data[j].absorb(&data[i])
			data[i].Samples = 0
			return data
		}
	}
	data[i].At = at
	return data
}
