package environment

import (
	"context"
	"fmt"
	"strings"

	"tendril/config"
	"tendril/fleet"
)

// isFleet reports whether the settings scale instances.
func isFleet(s *config.Settings) bool {
	return s.ScaleTarget == config.ScalePublish || strings.HasPrefix(s.ScaleTarget, config.ScaleGroup)
}

// openFleet opens the connections that a fleet needs, and finds out who is its leader. It ends
// late: the group may terminate this instance when everything else has ended.
func (e *Environment) openFleet(ctx context.Context) error {
	if !isFleet(e.s) {
		return nil
	}
	log := e.Logger.With("component", "scale")
	opts := fleet.Options{
		Namespace: "tendril/" + e.s.Name, Work: e.inFlight.Work, Drain: e.Drain, Load: e.instanceGauge().Read,
		Unprotected: e.s.ScaleInProtection == config.ProtectionOff, Log: log, LogSDK: e.Logger.SDK, Timing: e.fleetTiming,
	}
	if group, ok := strings.CutPrefix(e.s.ScaleTarget, config.ScaleGroup); ok {
		opts.Group = group
	}
	if e.Config.IsSet("region") {
		opts.Region = e.s.Region
	}
	f, err := fleet.Open(ctx, opts)
	if err != nil {
		return fmt.Errorf("%w: --scale-target %s: %w", ErrSettings, e.s.ScaleTarget, err)
	}
	e.fleet = f
	e.steps.push("the group of instances", f.Close)
	return e.electFleetLeader(ctx)
}

// electFleetLeader has the leader of the periodic tasks lead the fleet too, if there is a
// registry in which one is elected.
func (e *Environment) electFleetLeader(ctx context.Context) error {
	e.fleet.ElectLeader(e.tasks.Election().IsLeader)
	elected, err := e.tasks.Election().Join(ctx)
	if err == nil && !elected {
		e.Logger.Warn("no leader is elected: this instance assumes that no other one sets the size", "component", "scale",
			"hint", "give all instances the same --registry-table, so that one is elected")
	}
	return err
}

// inTask reports whether this process runs in a task of Amazon ECS, and is to protect it.
func (e *Environment) inTask() bool {
	return e.s.ScaleInProtection != config.ProtectionOff && fleet.InTask()
}

// protectTask protects the task of Amazon ECS that this is, if it is one, from scale-in and
// deployments while long work runs. It ends after the drain.
func (e *Environment) protectTask(context.Context) error {
	if !e.inTask() {
		return nil
	}
	end, err := fleet.ProtectTask(e.inFlight.Work, e.fleetTiming, e.Logger.With("component", "scale"))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	e.steps.push("the protection of the task", func(ctx context.Context) error { end(ctx); return nil })
	return nil
}
