package environment

import (
	"context"
	"fmt"
	"time"

	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/delivery/limit"
	"tendril/internal/environment/depth"
	"tendril/internal/observe/doctor"
	"tendril/internal/observe/telemetry"
)

func (c *core) openCloudWatch(ctx context.Context, state func() telemetry.Health) (*telemetry.CloudWatch, error) {
	if c.s.CloudWatch != config.On || c.QueuesOnly {
		return nil, nil
	}
	client, err := aws.OpenCloudWatch(ctx, c.aws())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	cloud := telemetry.NewCloudWatch(client, &telemetry.CloudWatchOptions{
		Name: c.s.Name, Interval: c.s.MetricsInterval, Environment: c.s.EnvironmentName, Health: state,
		Logger: c.Logger.Logger,
	})
	c.steps.background("the CloudWatch metrics", func(ctx context.Context) {
		cloud.Run(ctx) // which bounds its last call itself
		client.Close()
	})
	return cloud, nil
}

func (q *pipelines) workerReadings() (all []telemetry.WorkerStatus) {
	if !q.running() {
		return nil
	}
	for _, l := range q.lines {
		w := telemetry.WorkerStatus{Queue: l.name, Target: l.target, Status: l.worker.Status()}
		if l.limiter != nil {
			w.AdaptiveLimit = l.limiter.Status().Limit
		}
		all = append(all, w)
	}
	return all
}

// queueReadings tells what lies in the queues: all embedded ones, and those on Amazon SQS that are worked on.
func (q *pipelines) queueReadings() (all []telemetry.Queue) {
	if !q.running() {
		return nil
	}
	add := func(name string, r depth.Reading, known bool) {
		if known {
			all = append(all, telemetry.Queue{Name: name, Visible: r.Visible, InFlight: r.InFlight, Delayed: r.Delayed,
				OldestAge: r.Oldest, HasAge: r.HasAge})
		}
	}
	if q.broker != nil {
		for _, name := range q.broker.ListQueues("") {
			r, known := q.depths.Embedded(name)
			add(name, r, known)
		}
	}
	now := time.Now()
	for _, l := range q.lines {
		r, known := q.depths.OnSQS(l.name, now)
		add(l.name, r, known)
	}
	return all
}

// certificateReadings tells when the files for TLS expire.
func certificateReadings(files []doctor.Certificate) (all []telemetry.Certificate) {
	for _, c := range files {
		all = append(all, telemetry.Certificate{Option: c.Option, File: c.File, Expires: c.Expires})
	}
	return all
}

func (q *pipelines) limitReadings() (all []telemetry.Limit) {
	if !q.running() {
		return nil
	}
	seen := map[*limit.Limiter]bool{nil: true}
	for _, l := range q.lines {
		if seen[l.limiter] {
			continue
		}
		seen[l.limiter] = true
		s := l.limiter.Status()
		all = append(all, telemetry.Limit{
			Target: l.target, Breaker: s.Breaker,
			RateRefused: s.Refused.Rate, ConcurrencyRefused: s.Refused.Concurrency, BreakerRefused: s.Refused.Breaker,
		})
	}
	return all
}
