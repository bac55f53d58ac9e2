package environment

import (
	"context"
	"fmt"
	"time"

	"tendril/aws"
	"tendril/config"
	"tendril/depth"
	"tendril/limit"
	"tendril/periodic"
	"tendril/supervisor"
	"tendril/telemetry"
)

// openTelemetry makes what counts. It comes first, so that everything after can
// be counted, and ends last, so that the end is sent too.
func (e *Environment) openTelemetry(ctx context.Context) error {
	otlp, err := telemetry.OpenOTLP(ctx, &telemetry.OTLPOptions{Version: e.Version, Service: e.s.Name,
		Logger: e.Logger.Logger})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if otlp != nil {
		e.otlp = otlp
		e.steps.push("the way to the collector of telemetry", otlp.Close)
	}
	cloud, err := e.openCloudWatch(ctx)
	if err != nil {
		return err
	}
	e.telemetry = telemetry.New(&telemetry.Options{
		Version: e.Version, CloudWatch: cloud, OTLP: otlp, Logger: e.Logger.Logger,
		Sources: telemetry.Sources{
			Workers: e.lineReadings, Queues: e.queueReadings, Processes: e.processReadings,
			Tasks: e.taskReadings, Leader: e.leads, Limits: e.limitReadings,
		},
	})
	return nil
}

// openCloudWatch begins to send figures to CloudWatch, where that is wanted.
func (e *Environment) openCloudWatch(ctx context.Context) (*telemetry.CloudWatch, error) {
	if e.s.CloudWatch != config.On || e.QueuesOnly {
		return nil, nil
	}
	opts := &aws.Options{Log: e.Logger.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	client, err := aws.OpenCloudWatch(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	cloud := telemetry.NewCloudWatch(putter{client}, &telemetry.CloudWatchOptions{
		Name: e.s.Name, Interval: e.s.MetricsInterval, Environment: e.s.EnvironmentName, Health: e.monitor.Green,
		Logger: e.Logger.Logger,
	})
	run, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { cloud.Run(run); close(ended) }()
	e.steps.push("the figures for CloudWatch", func(context.Context) error {
		stop() // Run bounds its last call itself
		<-ended
		client.Close()
		return nil
	})
	return cloud, nil
}

// putter writes what package telemetry adds up.
type putter struct{ client *aws.CloudWatch }

// PutMetricData writes figures into a namespace of CloudWatch.
func (p putter) PutMetricData(ctx context.Context, namespace string, data []telemetry.Datum) error {
	converted := make([]aws.Datum, len(data))
	for i, d := range data {
		converted[i] = aws.Datum(d)
	}
	return p.client.PutMetricData(ctx, namespace, converted)
}

func (e *Environment) lineReadings() (all []telemetry.WorkerStatus) {
	if !e.running() {
		return nil
	}
	for _, l := range e.lines {
		w := telemetry.WorkerStatus{Queue: l.queue.name, Target: l.target, Status: l.worker.Status()}
		if limiter := e.limiters[l.targetKey()]; limiter != nil {
			w.AdaptiveLimit = limiter.Status().Limit
		}
		all = append(all, w)
	}
	return all
}

// queueReadings tells what lies in the queues: all embedded ones, and those on
// Amazon SQS that are worked on.
func (e *Environment) queueReadings(ctx context.Context) (all []telemetry.Queue) {
	if !e.running() {
		return nil
	}
	if e.broker != nil {
		for _, name := range e.broker.ListQueues("") {
			if r, ok := e.depths.Embedded(name); ok {
				all = append(all, queueMetrics(name, r))
			}
		}
	}
	now := time.Now()
	for _, l := range e.lines {
		if r, ok := e.depths.OnSQS(l.queue.name, now); ok {
			all = append(all, queueMetrics(l.queue.name, r))
		}
	}
	return all
}

func queueMetrics(name string, r depth.Reading) telemetry.Queue {
	return telemetry.Queue{Name: name, Visible: r.Visible, InFlight: r.InFlight, Delayed: r.Delayed, OldestAge: r.Oldest,
		HasAge: r.HasAge}
}

func (e *Environment) processReadings() []supervisor.Status {
	if !e.running() || e.app == nil {
		return nil
	}
	return e.app.Processes()
}

func (e *Environment) taskReadings() []periodic.TaskStatus {
	if !e.running() || e.tasks == nil {
		return nil
	}
	return e.tasks.Readings()
}

// leads reports whether this instance enqueues the periodic tasks.
func (e *Environment) leads() bool { return e.running() && e.tasks != nil && e.tasks.Leading() }

func (e *Environment) limitReadings() (all []telemetry.Limit) {
	if !e.running() {
		return nil
	}
	seen := map[*limit.Limiter]bool{}
	for _, l := range e.lines {
		limiter := e.limiters[l.targetKey()]
		if limiter == nil || seen[limiter] {
			continue
		}
		seen[limiter] = true
		s := limiter.Status()
		all = append(all, telemetry.Limit{
			Target: l.target, Breaker: s.Breaker,
			RateRefused: s.Refused.Rate, ConcurrencyRefused: s.Refused.Concurrency, BreakerRefused: s.Refused.Breaker,
		})
	}
	return all
}
