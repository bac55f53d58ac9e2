package telemetry

import (
	"slices"
	"sync"
	"time"

	"tendril/internal/aws"
	"tendril/internal/worker"
	"tendril/queue"
)

func mergeDatum(sum, more *aws.Datum) {
	if sum.Samples == 0 {
		sum.Minimum = more.Minimum
	}
	sum.Samples += more.Samples
	sum.Sum += more.Sum
	sum.Minimum = min(sum.Minimum, more.Minimum)
	sum.Maximum = max(sum.Maximum, more.Maximum)
}

type tally struct {
	queue string

	mu       sync.Mutex
	duration aws.Datum // milliseconds; only the values are set
	failed   float64
}

// settled ignores deliveries that were throttled or did not reach the app.
func (t *tally) settled(s worker.Settled) {
	if s.Outcome != queue.Done && s.Outcome != queue.Failed {
		return
	}
	took := float64(s.Duration) / float64(time.Millisecond)
	t.mu.Lock()
	defer t.mu.Unlock()
	mergeDatum(&t.duration, &aws.Datum{Samples: 1, Sum: took, Minimum: took, Maximum: took})
	if s.Outcome == queue.Failed {
		t.failed++
	}
}

// A whole interval without deliveries has only MessagesProcessed: zeros would distort the other metrics' averages.
func (t *tally) endInterval(at time.Time, whole bool) []aws.Datum {
	t.mu.Lock()
	duration, failed := t.duration, t.failed
	t.duration, t.failed = aws.Datum{}, 0
	t.mu.Unlock()

	named := func(name, unit string, d aws.Datum) aws.Datum {
		d.Name, d.Unit = name, unit
		d.At = at
		d.Dimension, d.DimensionValue = "Queue", t.queue
		return d
	}

	n := duration.Samples
	if n == 0 && !whole {
		return nil
	}
	processed := named("MessagesProcessed", "Count",
		aws.Datum{Samples: max(n, 1), Sum: n, Minimum: min(n, 1), Maximum: min(n, 1)})
	if n == 0 {
		return []aws.Datum{processed}
	}
	return []aws.Datum{
		processed,
		named("MessagesFailed", "Count",
			aws.Datum{Samples: n, Sum: failed, Minimum: boolValue(failed == n), Maximum: boolValue(failed > 0)}),
		named("Duration", "Milliseconds", duration),
	}
}

// Beyond maxIntervals, the oldest are merged.
const maxIntervals = 15

func mergeOldest(data []aws.Datum, limit int) []aws.Datum {
	for {
		starts := intervalStarts(data)
		if len(starts) <= limit {
			return data
		}
		data = mergeInto(data[starts[1]:], data[:starts[1]])
	}
}

func intervalStarts(data []aws.Datum) (starts []int) {
	for i := range data {
		if i == 0 || !data[i].At.Equal(data[i-1].At) {
			starts = append(starts, i)
		}
	}
	return starts
}

func mergeInto(data, oldest []aws.Datum) []aws.Datum {
	at := data[0].At
	for _, d := range oldest {
		d.At = at
		i := slices.IndexFunc(data, func(o aws.Datum) bool {
			return o.At.Equal(at) && o.Name == d.Name && o.DimensionValue == d.DimensionValue
		})
		if i >= 0 {
			mergeDatum(&data[i], &d)
		} else {
			data = slices.Insert(data, 0, d)
		}
	}
	return data
}
