package environment

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"tendril/autoscale"
	"tendril/aws"
	"tendril/config"
	"tendril/leader"
)

// fleet is this instance's part in a group of instances that share a queue. A
// nil *fleet is an instance on its own.
//
//	in charge:     sets the group's size, or publishes the load
//	every member:  kept from being taken away while long work runs; when it is
//	               taken away, drains, and lets the group go on at the very end
//
// Nothing of it is in the way of a message: what it cannot reach is told, and
// the work goes on.
type fleet struct {
	e *Environment
	// scaling is the service; group the one named in the settings, nil for
	// publishing.
	scaling *aws.AutoScaling
	group   *aws.Group
	// leads reports whether this instance is in charge. elector decides it, nil
	// where something else does.
	leads   func() bool
	elector *leader.Elector
	// reporter publishes the load; nil unless that was asked for.
	reporter *autoscale.Reporter

	members membership
	pace    fleetPace
	// charge are what ends first in a stop: elector and reporter.
	charge sync.WaitGroup
}

// fleetPace are the times of a member, for tests that do not wait; the zero
// value is the usual ones.
type fleetPace struct {
	// protectAfter is how long work lasts before the instance is protected, look
	// the time between two looks at the work, poll that between two questions
	// whether to leave.
	protectAfter, look, poll time.Duration
}

// isFleet reports whether the settings scale instances.
func isFleet(s *config.Settings) bool {
	return s.ScaleTarget == config.ScalePublish || strings.HasPrefix(s.ScaleTarget, config.ScaleGroup)
}

// openFleet opens the ways to Amazon that a fleet needs, and settles who is in
// charge. It ends late: the group is let go when everything else has ended.
func (e *Environment) openFleet(ctx context.Context) error {
	if !isFleet(e.s) {
		return nil
	}
	f := &fleet{e: e, pace: e.pace}
	opts := &aws.AutoScalingOptions{}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	var err error
	if f.scaling, err = aws.OpenAutoScaling(ctx, opts); err != nil {
		return fmt.Errorf("%w: --scale-target %s: %w", ErrSettings, e.s.ScaleTarget, err)
	}
	if name, ok := strings.CutPrefix(e.s.ScaleTarget, config.ScaleGroup); ok {
		f.group = f.scaling.Group(name)
	}
	f.members.open(f)
	e.fleet = f
	e.steps.push("the group of instances", f.leave)
	if err := f.elect(ctx); err != nil {
		return err
	}
	if e.s.ScaleTarget == config.ScalePublish {
		return f.openPublishing(ctx)
	}
	return nil
}

// leader decides who is in charge, where nothing else did before; nil where it does not.
func (f *fleet) leader() *leader.Elector {
	if f == nil {
		return nil
	}
	return f.elector
}

// elect settles who is in charge: whoever enqueues the periodic tasks, or would, where
// there is a registry to agree in.
func (f *fleet) elect(ctx context.Context) error {
	e := f.e
	f.leads = func() bool { return true }
	if t := e.cron.Load(); t != nil && t.elector != nil {
		f.leads = leading(t.elector)
		return nil
	}
	if e.s.Leader == config.LeaderLocal {
		return nil
	}
	reg, err := e.openRegistry(ctx)
	if err != nil {
		return err
	}
	if reg == nil || reg.leases == nil {
		e.report.note(slog.LevelWarn, "scale", "this instance believes to be alone in charge of the size: where there are others, give all of them the same --registry-table, so that one is elected")
		return nil
	}
	if f.elector, err = e.newElector(reg); err != nil {
		return err
	}
	f.leads = leading(f.elector)
	return nil
}

func leading(l *leader.Elector) func() bool {
	return func() bool {
		_, ok := l.Term()
		return ok
	}
}

// inCharge reports whether this instance sets the size.
func (f *fleet) inCharge() bool { return f == nil || f.leads() }

// openPublishing opens the way of the load to CloudWatch.
func (f *fleet) openPublishing(ctx context.Context) error {
	e := f.e
	opts := &aws.CloudWatchOptions{}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	client, err := aws.OpenCloudWatch(ctx, opts)
	if err != nil {
		return fmt.Errorf("%w: --scale-target %s: %w", ErrSettings, config.ScalePublish, err)
	}
	e.steps.push("the figures of the load", func(context.Context) error { client.Close(); return nil })
	f.reporter = &autoscale.Reporter{
		Gauge: e.instanceGauge(), Publisher: loadPublisher{client, "tendril/" + e.s.Name}, Instances: f.members.count,
		InCharge: f.inCharge, Events: e.scaleEvents("instance", "instances"),
	}
	return nil
}

// loadPublisher writes the load into a namespace of CloudWatch.
type loadPublisher struct {
	client    *aws.CloudWatch
	namespace string
}

// Publish sends the values, as of now.
func (p loadPublisher) Publish(ctx context.Context, metrics []autoscale.Metric) error {
	now := time.Now()
	data := make([]aws.Datum, len(metrics))
	for i, m := range metrics {
		data[i] = aws.Datum{Name: m.Name, Unit: m.Unit, At: now, Samples: 1, Sum: m.Value, Minimum: m.Value, Maximum: m.Value}
	}
	return p.client.PutMetricData(ctx, p.namespace, data)
}

// run begins this instance's part: what ctx ends is being in charge; being a
// member lasts until leave.
func (f *fleet) run(ctx context.Context) {
	if f == nil {
		return
	}
	if f.elector != nil {
		f.charge.Go(func() { f.elector.Run(ctx) })
	}
	f.members.run()
	if f.reporter != nil {
		f.charge.Go(func() {
			// What waits, and for how many, should be known by then.
			for _, known := range []chan struct{}{f.members.looked, f.e.counts.asked} {
				select {
				case <-known:
				case <-ctx.Done():
				}
			}
			f.reporter.Run(ctx)
		})
	}
}

// rest waits until this instance is not in charge any more.
func (f *fleet) rest() {
	if f != nil {
		f.charge.Wait()
	}
}

// leave ends the membership, after everything else has ended.
func (f *fleet) leave(ctx context.Context) error {
	f.members.leave(ctx)
	f.scaling.Close()
	return nil
}

// problem is what keeps this instance from being a full member; "" for nothing.
func (f *fleet) problem() string {
	if f == nil {
		return ""
	}
	return f.members.problem()
}
