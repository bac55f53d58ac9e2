package environment

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"tendril/autoscale"
	"tendril/aws"
	"tendril/config"
	"tendril/fleet"
)

// instanceFleet is this instance's part in a group of instances that share a queue. A
// nil *instanceFleet is an instance on its own.
//
//	in charge:     sets the group's size, or publishes the load
//	every member:  protected from scale-in while long work runs; when it is
//	               terminated, drains, and lets the group go on at the very end
type instanceFleet struct {
	service *aws.AutoScaling
	group   *aws.Group // the one named in the settings; nil for publishing
	member  *fleet.Member
	// leads reports whether this instance is in charge.
	leads func() bool
	// reporter publishes the load; nil unless that was asked for.
	reporter *autoscale.Reporter
	// charge is what ends first in a stop: the reporter.
	charge sync.WaitGroup
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
	f := &instanceFleet{}
	opts := &aws.Options{Log: e.report.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	var err error
	if f.service, err = aws.OpenAutoScaling(ctx, opts); err != nil {
		return fmt.Errorf("%w: --scale-target %s: %w", ErrSettings, e.s.ScaleTarget, err)
	}
	if name, ok := strings.CutPrefix(e.s.ScaleTarget, config.ScaleGroup); ok {
		f.group = f.service.Group(name)
	}
	f.member = fleet.NewMember(fleet.Options{
		Scaling: f.service, Group: f.group, Work: e.inFlight.Work, Unprotected: e.s.ScaleInProtection == config.ProtectionOff,
		Drain: e.Drain, Events: e.fleetEvents(), Timing: e.fleetTiming,
	})
	e.fleet = f
	e.steps.push("the group of instances", f.leave)
	if err := e.electForFleet(ctx, f); err != nil {
		return err
	}
	if e.s.ScaleTarget == config.ScalePublish {
		return e.openPublishing(ctx, f)
	}
	return nil
}

// fleetEvents tells what this instance does as a member of a group.
func (e *Environment) fleetEvents() fleet.Events {
	return fleet.Events{
		Events: e.scaleEvents("instance", "instances"),
		NotAMember: func(err error) {
			e.report.note(slog.LevelWarn, "scale",
				fmt.Sprintf("instance not found in any Auto Scaling group: scale-in protection and the drain before termination "+
					"are off: %v", err))
		},
		NoHook: func(group string) {
			e.report.note(slog.LevelWarn, "scale",
				fmt.Sprintf("the group %s has no lifecycle hook for autoscaling:EC2_INSTANCE_TERMINATING: an instance that is "+
					"terminated has no more time to finish its work than its shutdown takes", group))
		},
	}
}

// electForFleet settles who is in charge: whoever enqueues the periodic tasks, or would, where
// there is a registry to agree in.
func (e *Environment) electForFleet(ctx context.Context, f *instanceFleet) error {
	f.leads = e.tasks.Election().IsLeader
	elected, err := e.tasks.Election().Join(ctx)
	if err == nil && !elected {
		e.Logger.Warn("no leader is elected: this instance assumes that no other one sets the size", "component", "scale",
			"hint", "give all instances the same --registry-table, so that one is elected")
	}
	return err
}

// inCharge reports whether this instance sets the size.
func (f *instanceFleet) inCharge() bool { return f == nil || f.leads() }

// openPublishing opens the connection over which the load goes to CloudWatch.
func (e *Environment) openPublishing(ctx context.Context, f *instanceFleet) error {
	opts := &aws.Options{Log: e.report.SDK}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	client, err := aws.OpenCloudWatch(ctx, opts)
	if err != nil {
		return fmt.Errorf("%w: --scale-target %s: %w", ErrSettings, config.ScalePublish, err)
	}
	e.steps.push("the figures of the load", func(context.Context) error { client.Close(); return nil })
	f.reporter = &autoscale.Reporter{
		Gauge: e.instanceGauge(), Publisher: fleet.Publisher{Client: client, Namespace: "tendril/" + e.s.Name},
		Instances: f.member.Count, InCharge: f.inCharge, Events: e.scaleEvents("instance", "instances"),
	}
	return nil
}

// run begins this instance's part: what ctx ends is being in charge; being a
// member lasts until leave. The load is published from when it is known, which
// counted tells.
func (f *instanceFleet) run(ctx context.Context, counted <-chan struct{}) {
	if f == nil {
		return
	}
	f.member.Start()
	if f.reporter != nil {
		f.charge.Go(func() {
			for _, known := range []<-chan struct{}{f.member.Looked(), counted} {
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
func (f *instanceFleet) rest() {
	if f != nil {
		f.charge.Wait()
	}
}

// leave ends the membership, after everything else has ended.
func (f *instanceFleet) leave(ctx context.Context) error {
	f.member.Leave(ctx)
	f.service.Close()
	return nil
}

// problem is what keeps this instance from being a full member; "" for nothing.
func (f *instanceFleet) problem() string {
	if f == nil {
		return ""
	}
	return f.member.Problem()
}

// inTask reports whether this process runs in a task of Amazon ECS, and is to protect it.
func (e *Environment) inTask() bool {
	return e.s.ScaleInProtection != config.ProtectionOff && fleet.InTask()
}

// protectTask keeps the task of Amazon ECS that this is, if it is one, from being
// stopped by scale-in or a deployment while long work runs. It ends after the drain.
func (e *Environment) protectTask(context.Context) error {
	if !e.inTask() {
		return nil
	}
	end, err := fleet.ProtectTask(e.inFlight.Work, e.fleetTiming, e.scaleEvents("task", "tasks"))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	e.steps.push("the protection of the task", func(ctx context.Context) error { end(ctx); return nil })
	return nil
}
