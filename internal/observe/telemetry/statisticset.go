package telemetry

import (
	"slices"
	"sync"
	"time"

	"tendril/internal/aws"
	"tendril/internal/worker"
	"tendril/queue"
)

func mergeDatum(d, o *aws.Datum) {
	if d.Samples == 0 {
		d.Minimum = o.Minimum
	}
	d.Samples += o.Samples
	d.Sum += o.Sum
	d.Minimum = min(d.Minimum, o.Minimum)
	d.Maximum = max(d.Maximum, o.Maximum)
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

// endInterval adds only MessagesProcessed for a whole interval without deliveries, because zeros would distort the
// averages.
func (t *tally) endInterval(data []aws.Datum, at time.Time, whole bool) []aws.Datum {
	t.mu.Lock()
	duration, failed := t.duration, t.failed
	t.duration, t.failed = aws.Datum{}, 0
	t.mu.Unlock()

	n := duration.Samples
	if n == 0 && !whole {
		return data
	}

	duration.Name, duration.Unit = "Duration", "Milliseconds"
	duration.At = at
	duration.Dimension, duration.DimensionValue = "Queue", t.queue
	processed, failures := duration, duration
	processed.Name, processed.Unit = "MessagesProcessed", "Count"
	if n == 0 {
		processed.Samples = 1
		return append(data, processed)
	}

	processed.Sum = n
	processed.Minimum, processed.Maximum = 1, 1

	failures.Name, failures.Unit = "MessagesFailed", "Count"
	failures.Sum = failed
	failures.Minimum, failures.Maximum = boolValue(failed == n), boolValue(failed > 0)
	return append(data, processed, failures, duration)
}

// Older intervals are merged while CloudWatch does not accept data.
const maxIntervals = 15

func mergeOldest(data []aws.Datum, limit int) []aws.Datum {
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
			i := slices.IndexFunc(rest, func(o aws.Datum) bool {
				return o.At.Equal(d.At) && o.Name == d.Name && o.DimensionValue == d.DimensionValue
			})
			if i >= 0 {
				mergeDatum(&rest[i], &d)
			} else {
				rest = slices.Insert(rest, 0, d)
			}
		}
		data = rest
	}
}
