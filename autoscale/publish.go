package autoscale

import (
	"context"
	"time"
)

// Metric is one value for a service of metrics.
type Metric struct {
	// Name is "BacklogPerInstance" or "OldestAgeSeconds".
	Name  string
	Value float64
	// Unit is "Count" or "Seconds".
	Unit string
}

// Metrics returns the metrics that an Auto Scaling group can track: the waiting messages
// per instance, and the age of the oldest one. Unknown values are left out, so that an
// alarm sees missing data rather than 0.
func Metrics(in Inputs, instances int) []Metric {
	var out []Metric
	if in.Backlog.Known {
		out = append(out, Metric{"BacklogPerInstance", in.Backlog.Value / float64(max(instances, 1)), "Count"})
	}
	if in.OldestAge.Known {
		out = append(out, Metric{"OldestAgeSeconds", in.OldestAge.Value, "Seconds"})
	}
	return out
}

// Reporter publishes [Metrics] for an external scaler. Load and Publish are required.
type Reporter struct {
	// Load returns the current measures.
	Load func() Inputs
	// Publish sends the current values to a service.
	Publish func(ctx context.Context, metrics []Metric) error
	// Instances returns how many instances share the queue; nil means 1.
	Instances func(ctx context.Context) (int, error)
	// Every is the time between two calls; 0 means 60 s.
	Every time.Duration
	// CallTimeout limits one round of calls; 0 means 10 s.
	CallTimeout time.Duration
	// IsLeader, unless nil, is called before: only one instance needs to publish.
	IsLeader func() bool
	Events   Events
}

// Run publishes until ctx ends. It reports failures and tries again in the next round.
func (r *Reporter) Run(ctx context.Context) {
	ticker := time.NewTicker(durationOr(r.Every, time.Minute))
	defer ticker.Stop()
	failures := 0
	for {
		if r.IsLeader == nil || r.IsLeader() {
			failures++
			if err := r.publish(ctx); err == nil {
				failures = 0
			} else if ctx.Err() == nil {
				call(r.Events.Failed, Failed{Doing: "publishing the load", Err: err, Consecutive: failures})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *Reporter) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, durationOr(r.CallTimeout, callTimeout))
	defer cancel()
	in, instances := r.Load(), 1
	if r.Instances != nil {
		var err error
		if instances, err = r.Instances(ctx); err != nil {
			return err
		}
	}
	metrics := Metrics(in, instances)
	if len(metrics) == 0 {
		return nil
	}
	return r.Publish(ctx, metrics)
}
