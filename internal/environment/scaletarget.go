package environment

import (
	"context"
	"log/slog"

	"tendril/internal/autoscale/fleet"
	"tendril/internal/config"
	"tendril/internal/observe/event"
)

// chooseTarget finds out what is scaled where the settings leave that to the place that this process runs in. No
// message waits for that: the machine or the service that is asked may not answer.
//
// The sizes of a bundle are those of a group. Where this process runs alone, they are the app's processes. In a
// group, tendril acts on it only if nothing else does: two that set one size undo each other's changes.
func (s *sizing) chooseTarget(ctx context.Context) error {
	set := s.settings.now()
	s.target = set.ScaleTarget
	if s.target != config.ScaleAuto {
		return nil
	}

	log := s.opts.Logger.With("component", "scale")
	var place fleet.Place
	var err error
	if set.AnyOnSQS() { // embedded queues are this process's own: so is the work
		place, err = fleet.Find(ctx, s.opts.aws().Region, s.opts.Logger.SDK)
	}
	switch {
	case err != nil:
		s.leaveSize("not known whether something else scales the instances: " + err.Error())
	case place.Alone() && !s.opts.HasApp():
		s.leaveSize("no app runs here")
	case place.ScaledBy != "":
		s.leaveSize(place.String() + " is scaled by " + place.ScaledBy)
	default:
		s.target = place.String()
		least, most := set.ScaleMinSize, set.ScaleMaxSize
		if place.Alone() {
			least, most = set.ProcessesMin, maxReplicas(set)
		}
		event.Scaling.Log(log, slog.LevelInfo, "scale target chosen", "target", s.target, "min_size", least, "max_size", most,
			"hint", "--scale-target none keeps the size")
	}
	return nil
}

// leaveSize scales nothing, for a reason that is logged and shown.
func (s *sizing) leaveSize(why string) {
	s.target, s.left = config.ScaleNone, why
	s.opts.Logger.With("component", "scale").Warn("size not changed", "reason", why,
		"hint", "give --scale-target asg:GROUP, ecs:CLUSTER/SERVICE or processes to scale it all the same, or none")
}

// isAuto reports whether the size of a group was not asked for by an option, but follows from a bundle.
func (s *sizing) isAuto() bool { return s.settings.now().ScaleTarget == config.ScaleAuto }

// isFleet reports whether instances are scaled or counted, and not the processes on this one.
func (s *sizing) isFleet() bool {
	return s.target != config.ScaleProcesses && s.target != config.ScaleNone
}

// isFleet reports whether settings scale instances, or may: where that is found out at the start.
func isFleet(s *config.Settings) bool {
	return s.ScalesInstances() || s.ScaleTarget == config.ScaleAuto && s.AnyOnSQS()
}

// startReplicas is how many replicas of the app the start waits for. Those that only a bundle for a group asks for
// come later: an app that can run only once on a machine must start all the same.
func (s *sizing) startReplicas() int {
	if s.isAuto() {
		return 1
	}
	return s.settings.now().ProcessesMin
}
