package autoscale

import (
	"cmp"
	"context"
	"time"
)

// Metric is one value for a service of metrics.
type Metric struct {
	Name  string // "BacklogPerInstance" or "OldestAgeSeconds"
	Value float64
	Unit  string // "Count" or "Seconds"
}

// metrics returns the metrics that an Auto Scaling group can track: the waiting messages
// per instance, and the age of the oldest one. Unknown values are left out, so that an
// alarm sees missing data rather than 0.
func metrics(in Inputs, instances int) []Metric {
	var out []Metric
	if in.Backlog.Known {
		out = append(out, Metric{"BacklogPerInstance", in.Backlog.Value / float64(max(instances, 1)), "Count"})
	}
	if in.OldestAge.Known {
		out = append(out, Metric{"OldestAgeSeconds", in.OldestAge.Value, "Seconds"})
	}
	return out
}

// Reporter publishes metrics for an external scaler. Every func is required.
type Reporter struct {
	// Load returns the current measures.
	Load func() Inputs
	// Publish sends the current values to a service.
	Publish func(ctx context.Context, metrics []Metric) error
	// Instances returns how many instances share the queue.
	Instances func(ctx context.Context) (int, error)
	// Every is the time between two calls; 0 means 60 s.
	Every time.Duration
	// IsLeader is called before: only one instance needs to publish.
	IsLeader func() bool
	Events   Events
}

// Run publishes until ctx ends. It reports failures and tries again in the next round.
func (r *Reporter) Run(ctx context.Context) {
	calls := newCaller(0, r.Events.Failed)
	every(ctx, cmp.Or(r.Every, time.Minute), func() bool {
		if r.IsLeader() {
			_ = calls.do(ctx, "publishing the load", r.publish) // reported
		}
		return true
	})
}

func (r *Reporter) publish(ctx context.Context) error {
	in := r.Load()
	instances, err := r.Instances(ctx)
	if metrics := metrics(in, instances); err == nil && len(metrics) > 0 {
		err = r.Publish(ctx, metrics)
	}
	return err
}
