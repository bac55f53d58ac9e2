package fleet

import (
	"context"
	"os"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/aws"
)

// Fleet is this instance's part in a group of instances that share a queue. The leader sets
// the size of the group or service, or publishes the load. A member of an Auto Scaling group is
// protected from scale-in while long work runs, and drains when the group terminates it. A nil
// *Fleet is an instance on its own.
type Fleet struct {
	opts     Options
	self     *member             // this EC2 instance; nil where tasks of Amazon ECS are scaled or counted
	tasks    *serviceTasks       // those; nil elsewhere
	metrics  *aws.CloudWatch     // nil unless the load is published
	reporter *autoscale.Reporter // likewise
}

// Open opens the connections to Amazon. [Fleet.Close] must be called when everything else has ended.
func Open(ctx context.Context, opts Options) (*Fleet, error) {
	f := &Fleet{opts: opts}
	connection := &aws.Options{Region: opts.Region, Log: opts.LogSDK}
	count := func(ctx context.Context) (int, error) { return f.tasks.count(ctx) }

	switch {
	case opts.Service != "":
		api, err := aws.OpenECS(ctx, connection)
		if err != nil {
			return nil, err
		}
		f.tasks = &serviceTasks{api: api, service: api.Service(opts.Cluster, opts.Service)}
	case opts.Group == "" && os.Getenv(metadataVariable) != "":
		f.tasks = &serviceTasks{connection: connection}
	default:
		service, err := aws.OpenAutoScaling(ctx, connection)
		if err != nil {
			return nil, err
		}
		f.self = newMember(opts, service)
		count = f.self.count
	}

	if opts.Group != "" || opts.Service != "" {
		return f, nil
	}

	var err error
	if f.metrics, err = aws.OpenCloudWatch(ctx, connection); err != nil {
		f.closeConnections()
		return nil, err
	}

	f.reporter = &autoscale.Reporter{
		Load: opts.Load, Instances: count, IsLeader: f.IsLeader, Events: autoscale.LogEvents(opts.Log, "instances"),
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

// Target is the group or service that the options name as something that package autoscale can size.
func (f *Fleet) Target() autoscale.Target {
	if f.tasks != nil {
		return f.tasks.service
	}
	return &sizedGroup{Group: f.self.service.Group(f.opts.Group), self: f.self}
}

// Members is a group of instances as it was when it was asked last.
type Members struct {
	// Group is its name, Self the id of this instance in it; "" where that is not known.
	Group, Self string
	Instances   []aws.GroupInstance
	At          time.Time
}

// Members returns the members of the Auto Scaling group, which is asked for its size now and then; nothing where there
// is no group, or before it was asked.
func (f *Fleet) Members() Members {
	if f == nil || f.self == nil {
		return Members{}
	}
	f.self.mu.Lock()
	defer f.self.mu.Unlock()
	return f.self.members
}

// Run does this instance's part: being a member goes on until Close, publishing ends with ctx. The
// load is published from when counted is closed, because it is not known before.
func (f *Fleet) Run(ctx context.Context, counted <-chan struct{}) {
	if f == nil {
		return
	}
	known := []<-chan struct{}{counted}
	if f.self != nil {
		f.self.start()
		known = append(known, f.self.looked)
	}
	if f.reporter == nil {
		return
	}
	for _, known := range known {
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
	if f.self != nil {
		f.self.leave(ctx)
	}
	f.closeConnections()
	if f.metrics != nil {
		f.metrics.Close()
	}
	return nil
}

func (f *Fleet) closeConnections() {
	if f.self != nil {
		f.self.service.Close()
	}
	if f.tasks != nil && f.tasks.api != nil {
		f.tasks.api.Close()
	}
}

// Problem is what keeps this instance from being a full member; "" for nothing.
func (f *Fleet) Problem() string {
	if f == nil || f.self == nil {
		return ""
	}
	return f.self.problem()
}

// serviceTasks are the tasks of a service of Amazon ECS. Its methods are for one goroutine.
type serviceTasks struct {
	connection *aws.Options    // to find the service of this task with
	api        *aws.ECS        // nil while the service is not known
	service    *aws.ECSService // likewise, and where this task belongs to none
	none       bool            // this task belongs to no service
}

// count returns how many tasks share the queue: those of the service that run, or this one.
func (t *serviceTasks) count(ctx context.Context) (int, error) {
	if t.service == nil && !t.none {
		api, task, err := openService(ctx, t.connection)
		if err != nil {
			return 0, err
		}
		if t.none = task.Service == ""; !t.none {
			t.api, t.service = api, api.Service(task.Cluster, task.Service)
		}
	}
	if t.none {
		return 1, nil
	}
	running, _, err := t.service.Size(ctx)
	return running, err
}

// sizedGroup is an Auto Scaling group as something that package autoscale can size, within the
// group's own bounds. Its methods are for one goroutine.
type sizedGroup struct {
	*aws.Group
	self        *member
	least, most int
}

// Size returns how many instances are in service, and how many the group wants.
func (g *sizedGroup) Size(ctx context.Context) (current, desired int, err error) {
	s, err := g.Describe(ctx)
	if err == nil {
		g.least, g.most = s.Min, s.Max
		g.self.saw(g.Name(), s)
	}
	return s.InService(), s.Desired, err
}

// Bounds returns the group's bounds as of the last Size.
func (g *sizedGroup) Bounds() (least, most int) { return g.least, g.most }
