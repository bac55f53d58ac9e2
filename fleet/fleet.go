package fleet

import (
	"context"
	"time"

	"tendril/autoscale"
	"tendril/aws"
)

// Fleet is this instance's part in a group of instances that share a queue. The leader sets
// the group's size, or publishes the load. Each member is protected from scale-in while long
// work runs, and drains when the group terminates it. A nil *Fleet is an instance on its own.
type Fleet struct {
	*member
	metrics  *aws.CloudWatch     // nil unless the load is published
	reporter *autoscale.Reporter // likewise
}

// Open opens the connections to Amazon. [Fleet.Close] must be called when everything else has ended.
func Open(ctx context.Context, opts Options) (*Fleet, error) {
	connection := &aws.Options{Region: opts.Region, Log: opts.LogSDK}
	service, err := aws.OpenAutoScaling(ctx, connection)
	if err != nil {
		return nil, err
	}
	f := &Fleet{member: newMember(opts, service)}
	if opts.Group != "" {
		return f, nil
	}
	f.metrics, err = aws.OpenCloudWatch(ctx, connection)
	if err != nil {
		service.Close()
		return nil, err
	}
	f.reporter = &autoscale.Reporter{
		Load: opts.Load, Instances: f.count, IsLeader: f.IsLeader, Events: autoscale.LogEvents(opts.Log, "instances"),
		Publish: func(ctx context.Context, metrics []autoscale.Metric) error {
			now := time.Now()
			var data []aws.Datum
			for _, m := range metrics {
				data = append(data, aws.Datum{Name: m.Name, Unit: m.Unit, At: now, Samples: 1, Sum: m.Value,
					Minimum: m.Value, Maximum: m.Value})
			}
			return f.metrics.PutMetricData(ctx, opts.Namespace, data)
		},
	}
	return f, nil
}

// IsLeader reports whether this instance sets the size or publishes the load.
func (f *Fleet) IsLeader() bool { return f == nil || f.opts.IsLeader() }

// Target is the group that the options name as something that package autoscale can size.
func (f *Fleet) Target() autoscale.Target { return &sizedGroup{Group: f.service.Group(f.opts.Group)} }

// Run does this instance's part: being a member goes on until Close, publishing ends with ctx. The
// load is published from when counted is closed, because it is not known before.
func (f *Fleet) Run(ctx context.Context, counted <-chan struct{}) {
	if f == nil {
		return
	}
	f.start()
	if f.reporter == nil {
		return
	}
	for _, known := range []<-chan struct{}{f.looked, counted} {
		select {
		case <-known:
		case <-ctx.Done():
		}
	}
	f.reporter.Run(ctx)
}

// Close ends the membership, after everything else has ended: the group may terminate the
// instance then. ctx bounds it.
func (f *Fleet) Close(ctx context.Context) error {
	f.leave(ctx)
	f.service.Close()
	if f.metrics != nil {
		f.metrics.Close()
	}
	return nil
}

// Problem is what keeps this instance from being a full member; "" for nothing.
func (f *Fleet) Problem() string {
	if f == nil {
		return ""
	}
	return f.problem()
}

// sizedGroup is an Auto Scaling group as something that package autoscale can size, within the
// group's own bounds. Its methods are for one goroutine.
type sizedGroup struct {
	*aws.Group
	least, most int
}

// Size returns how many instances are in service, and how many the group wants.
func (g *sizedGroup) Size(ctx context.Context) (current, desired int, err error) {
	s, err := g.Describe(ctx)
	if err == nil {
		g.least, g.most = s.Min, s.Max
	}
	return s.InService(), s.Desired, err
}

// Bounds returns the group's bounds as of the last Size.
func (g *sizedGroup) Bounds() (least, most int) { return g.least, g.most }
