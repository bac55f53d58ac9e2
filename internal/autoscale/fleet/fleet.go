package fleet

import (
	"context"
	"os"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/aws"
)

// Fleet is this instance's membership in a group. The leader sets the size of the group or service, or publishes the
// load. A nil *Fleet is a single instance.
type Fleet struct {
	opts     Options
	self     *member         // nil in an ECS task
	tasks    *serviceTasks   // nil outside ECS
	metrics  *aws.CloudWatch // nil unless needed to publish the load or read the group's metric
	reporter *autoscale.Reporter
}

// Open creates the AWS clients, which [Fleet.Close] closes.
func Open(ctx context.Context, opts Options) (*Fleet, error) {
	f := &Fleet{opts: opts}
	connection := &aws.Options{Region: opts.Region, Log: opts.LogSDK}

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
	}

	publishes := opts.Group == "" && opts.Service == ""
	if publishes || opts.CPUMetric {
		var err error
		if f.metrics, err = aws.OpenCloudWatch(ctx, connection); err != nil {
			f.closeConnections()
			return nil, err
		}
	}
	if publishes {
		f.reporter = &autoscale.Reporter{
			Load: opts.Load, Publish: f.publish, Instances: f.countInstances, IsLeader: f.IsLeader,
			Events: autoscale.LogEvents(opts.Log, "instances"),
		}
	}
	return f, nil
}

func (f *Fleet) publish(ctx context.Context, metrics []autoscale.Metric) error {
	now := time.Now()
	var data []aws.Datum
	for _, m := range metrics {
		data = append(data, aws.Datum{Name: m.Name, Unit: m.Unit, At: now, Samples: 1, Sum: m.Value, Minimum: m.Value,
			Maximum: m.Value})
	}
	return f.metrics.PutMetricData(ctx, f.opts.Namespace, data)
}

func (f *Fleet) countInstances(ctx context.Context) (int, error) {
	if f.self != nil {
		return f.self.countInstances(ctx)
	}
	return f.tasks.count(ctx)
}

// IsLeader reports whether this instance sets the size or publishes the load.
func (f *Fleet) IsLeader() bool { return f == nil || f.opts.IsLeader() }

// Target returns the configured group or service.
func (f *Fleet) Target() autoscale.Target {
	if f.tasks != nil {
		return f.tasks.service
	}
	return &sizedGroup{Group: f.self.service.Group(f.opts.Group), self: f.self}
}

// Amazon EC2 publishes readings some time after their period.
const metricDelay = 2 * time.Minute

// CPUMetric returns a function that reads the group's CPU utilization from CloudWatch, with the policy's statistic and
// period. The function is not safe for concurrent use.
func (f *Fleet) CPUMetric(p autoscale.Policy) func(context.Context) (autoscale.Datapoint, error) {
	var last aws.Datum
	return func(ctx context.Context) (autoscale.Datapoint, error) {
		end := time.Now().Add(-metricDelay).Truncate(p.Period)
		if last.Samples == 0 || last.At.Add(p.Period).Before(end) {
			newest, err := f.metrics.GroupCPU(ctx, f.opts.Group, end, p.Period)
			if err != nil {
				return autoscale.Datapoint{}, err
			}
			last = newest
		}
		if last.Samples == 0 {
			return autoscale.Datapoint{}, nil
		}
		return autoscale.Datapoint{Value: statistic(&last, p.Statistic), From: last.At, Samples: int(last.Samples)}, nil
	}
}

func statistic(d *aws.Datum, s autoscale.Statistic) float64 {
	switch s {
	case autoscale.Minimum:
		return d.Minimum
	case autoscale.Maximum:
		return d.Maximum
	case autoscale.Sum:
		return d.Sum
	}
	return d.Sum / d.Samples
}

// Members is the last known state of an Auto Scaling group.
type Members struct {
	Group, Self string
	Instances   []aws.GroupInstance
	At          time.Time
}

// Members returns the group's last known members, or the zero value outside an Auto Scaling group.
func (f *Fleet) Members() Members {
	if f == nil || f.self == nil {
		return Members{}
	}
	f.self.mu.Lock()
	defer f.self.mu.Unlock()
	return f.self.members
}

// Run starts the membership, which lasts until Close. Without a group or service to resize, Run then waits until
// counted is closed, and publishes the load until ctx ends.
func (f *Fleet) Run(ctx context.Context, counted <-chan struct{}) {
	if f == nil {
		return
	}

	required := []<-chan struct{}{counted}
	if f.self != nil {
		f.self.start()
		required = append(required, f.self.looked)
	}

	if f.reporter == nil {
		return
	}

	for _, known := range required {
		select {
		case <-known:
		case <-ctx.Done():
		}
	}

	f.reporter.Run(ctx)
}

// Close ends the membership, so that the group may terminate the instance. Call it after everything else has stopped.
func (f *Fleet) Close(ctx context.Context) error {
	if f.self != nil {
		f.self.leave(ctx)
	}
	f.closeConnections()
	return nil
}

func (f *Fleet) closeConnections() {
	if f.self != nil {
		f.self.service.Close()
	}
	if f.tasks != nil && f.tasks.api != nil {
		f.tasks.api.Close()
	}
	if f.metrics != nil {
		f.metrics.Close()
	}
}

// Problem returns why this instance is not a full member, or "".
func (f *Fleet) Problem() string {
	if f == nil || f.self == nil {
		return ""
	}
	return f.self.problem()
}

type serviceTasks struct {
	connection *aws.Options
	api        *aws.ECS        // nil if unknown
	service    *aws.ECSService // nil if unknown or absent
	none       bool
}

func (t *serviceTasks) count(ctx context.Context) (int, error) {
	if err := t.findService(ctx); err != nil {
		return 0, err
	}
	if t.none {
		return 1, nil
	}
	running, _, err := t.service.Size(ctx)
	return running, err
}

func (t *serviceTasks) findService(ctx context.Context) error {
	if t.service != nil || t.none {
		return nil
	}

	api, task, err := openService(ctx, t.connection)
	if err != nil {
		return err
	}
	if task.Service == "" {
		t.none = true
		return nil
	}
	t.api, t.service = api, api.Service(task.Cluster, task.Service)
	return nil
}

// sizedGroup also applies the group's own limits. It is not safe for concurrent use.
type sizedGroup struct {
	*aws.Group
	self        *member
	least, most int
}

func (g *sizedGroup) Size(ctx context.Context) (current, desired int, err error) {
	s, err := g.Describe(ctx)
	if err == nil {
		g.least, g.most = s.Min, s.Max
		g.self.setMembers(g.Name(), s)
	}
	return s.InService(), s.Desired, err
}

func (g *sizedGroup) Bounds() (least, most int) { return g.least, g.most }
