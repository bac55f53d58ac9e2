package fleet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tendril/autoscale"
	"tendril/aws"
)

// Options say what a [Fleet] needs. Work, Drain, Load and Log are required.
type Options struct {
	// Region is where the group is; "" means what the environment, the profile or the
	// metadata of the instance say.
	Region string
	// Group is the name of the group whose size is set; "" means that this instance may be in
	// any group, and publishes the load into Namespace.
	Group, Namespace string
	// Work returns how much is in flight, which decides about protection from scale-in.
	Work func() autoscale.Work
	// Unprotected leaves protection from scale-in to others.
	Unprotected bool
	// Drain finishes what is in flight, before the group terminates this instance.
	Drain func(context.Context) error
	// Load measures the load to publish.
	Load func() autoscale.Inputs
	// Log gets what happens, and LogSDK what the AWS SDK logs.
	Log    *slog.Logger
	LogSDK func(level slog.Level, text string)
	// Timing is for tests that do not wait; the zero value means the usual times.
	Timing Timing
}

// Timing are the times of a [Member]; 0 means the default of each.
type Timing struct {
	// ProtectAfter is how long a delivery lasts before the instance is protected; negative
	// means at once. Look is the time between two looks at the work, Poll that between two
	// questions whether the instance is being terminated.
	ProtectAfter, Look, Poll time.Duration
}

// Fleet is this instance's part in a group of instances that share a queue. The leader sets
// the group's size, or publishes the load. Each member is protected from scale-in while long
// work runs, and drains when the group terminates it. A nil *Fleet is an instance on its own.
type Fleet struct {
	service  *aws.AutoScaling
	metrics  *aws.CloudWatch // nil unless the load is published
	group    *aws.Group      // nil unless its size is set
	member   *Member
	isLeader func() bool
	reporter *autoscale.Reporter // nil unless the load is published
	// leading are what runs while this instance may be the leader.
	leading sync.WaitGroup
}

// Open opens the connections to Amazon. [Fleet.Close] must be called when everything else has
// ended.
func Open(ctx context.Context, opts Options) (*Fleet, error) {
	service, err := aws.OpenAutoScaling(ctx, &aws.Options{Region: opts.Region, Log: opts.LogSDK})
	if err != nil {
		return nil, err
	}
	f := &Fleet{service: service, isLeader: func() bool { return true }}
	if opts.Group != "" {
		f.group = service.Group(opts.Group)
	}
	f.member = newMember(opts, service, f.group)
	if f.group != nil {
		return f, nil
	}
	f.metrics, err = aws.OpenCloudWatch(ctx, &aws.Options{Region: opts.Region, Log: opts.LogSDK})
	if err != nil {
		service.Close()
		return nil, err
	}
	f.reporter = &autoscale.Reporter{
		Load: opts.Load, Instances: f.member.Count, IsLeader: f.IsLeader, Events: autoscale.LogEvents(opts.Log, "instances"),
		Publish: func(ctx context.Context, metrics []autoscale.Metric) error {
			now := time.Now()
			var data []aws.Datum
			for _, m := range metrics {
				data = append(data, aws.Datum{Name: m.Name, Unit: m.Unit, At: now, Samples: 1,
					Sum: m.Value, Minimum: m.Value, Maximum: m.Value})
			}
			return f.metrics.PutMetricData(ctx, opts.Namespace, data)
		},
	}
	return f, nil
}

// ElectLeader says what decides whether this instance is the leader; without it, it always
// is. It must be called before [Fleet.Start].
func (f *Fleet) ElectLeader(isLeader func() bool) { f.isLeader = isLeader }

// IsLeader reports whether this instance sets the size or publishes the load.
func (f *Fleet) IsLeader() bool { return f == nil || f.isLeader() }

// Target is the group as something that package autoscale can size.
func (f *Fleet) Target() autoscale.Target { return &sizedGroup{Group: f.group} }

// Start begins this instance's part. Publishing ends with ctx, being a member with Close. The
// load is published from when counted is closed, because it is not known before.
func (f *Fleet) Start(ctx context.Context, counted <-chan struct{}) {
	if f == nil {
		return
	}
	f.member.Start()
	if f.reporter == nil {
		return
	}
	f.leading.Go(func() {
		for _, known := range []<-chan struct{}{f.member.Looked(), counted} {
			select {
			case <-known:
			case <-ctx.Done():
			}
		}
		f.reporter.Run(ctx)
	})
}

// WaitLeader waits until this instance is not the leader any more, after the context of
// [Fleet.Start] has ended.
func (f *Fleet) WaitLeader() {
	if f != nil {
		f.leading.Wait()
	}
}

// Close ends the membership, after everything else has ended: the group may terminate the
// instance then. ctx bounds it.
func (f *Fleet) Close(ctx context.Context) error {
	f.member.Leave(ctx)
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
	return f.member.Problem()
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
