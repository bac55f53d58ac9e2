package autoscale

import (
	"context"
	"errors"
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

// Publisher sends metrics to a service.
type Publisher interface {
	// Publish sends the current values.
	Publish(ctx context.Context, metrics []Metric) error
}

// Reporter publishes [Metrics] for an external scaler. Gauge and Publisher are required.
type Reporter struct {
	Gauge     Gauge
	Publisher Publisher
	// Instances returns how many instances share the queue; nil means 1.
	Instances func(ctx context.Context) (int, error)
	// Every is the time between two calls; 0 means 60 s.
	Every time.Duration
	// CallTimeout limits one round of calls; 0 means 10 s.
	CallTimeout time.Duration
	// InCharge, unless nil, is called before: only one instance needs to publish.
	InCharge func() bool
	Events   Events
}

// Run publishes until ctx ends, then returns nil. It reports failures and tries again in
// the next round.
func (r *Reporter) Run(ctx context.Context) error {
	if r.Gauge == nil || r.Publisher == nil {
		return errors.New("publishing the load: Gauge and Publisher are required")
	}
	every := r.Every
	if every <= 0 {
		every = time.Minute
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	failures := 0
	for {
		if r.InCharge == nil || r.InCharge() {
			failures++
			if err := r.publish(ctx); err == nil {
				failures = 0
			} else if ctx.Err() == nil {
				call(r.Events.Failed, Failed{Doing: "publishing the load", Err: err, InARow: failures})
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (r *Reporter) publish(ctx context.Context) error {
	timeout := r.CallTimeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	in, err := r.Gauge.Read(ctx)
	if err != nil {
		return err
	}
	instances := 1
	if r.Instances != nil {
		if instances, err = r.Instances(ctx); err != nil {
			return err
		}
	}
	metrics := Metrics(in, instances)
	if len(metrics) == 0 {
		return nil
	}
	return r.Publisher.Publish(ctx, metrics)
}
