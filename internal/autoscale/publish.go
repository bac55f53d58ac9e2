package autoscale

import (
	"context"
	"time"
)

// Metric is a metric to publish.
type Metric struct {
	Name  string // "BacklogPerInstance" or "OldestAgeSeconds"
	Value float64
	Unit  string // "Count" or "Seconds"
}

// metricsOf omits unknown values, so that an alarm sees missing data rather than 0.
func metricsOf(in Inputs, instances int) []Metric {
	var out []Metric
	if in.Backlog.Known {
		out = append(out, Metric{"BacklogPerInstance", in.Backlog.Value / float64(max(instances, 1)), "Count"})
	}
	if in.OldestAge.Known {
		out = append(out, Metric{"OldestAgeSeconds", in.OldestAge.Value, "Seconds"})
	}
	return out
}

// Reporter publishes metrics for an external scaler. All functions are required.
type Reporter struct {
	Load      func() Inputs
	Publish   func(ctx context.Context, metrics []Metric) error
	Instances func(ctx context.Context) (int, error)
	IsLeader  func() bool
	Events    Events
}

// Run publishes the metrics every minute until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	calls := newCaller(r.Events.Failed)
	every(ctx, time.Minute, func() bool {
		if r.IsLeader() {
			_ = calls.do(ctx, "publishing the load", r.publishLoad) // reported already
		}
		return true
	})
}

func (r *Reporter) publishLoad(ctx context.Context) error {
	in := r.Load()
	instances, err := r.Instances(ctx)
	if err != nil {
		return err
	}
	metrics := metricsOf(in, instances)
	if len(metrics) == 0 {
		return nil
	}
	return r.Publish(ctx, metrics)
}
