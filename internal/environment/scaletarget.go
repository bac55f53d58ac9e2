package environment

import (
	"context"
	"log/slog"

	"tendril/internal/autoscale/fleet"
	"tendril/internal/config"
	"tendril/internal/observe/event"
)

// chooseTarget runs after the workers have started, so that deliveries do not wait for AWS. Sizes in a bundle apply to a
// group; for a standalone instance, they are the number of app processes. A group with another scaler is not scaled,
// because the two would undo each other's changes.
func (s *sizing) chooseTarget(ctx context.Context) error {
	set := s.settings.now()
	s.target = set.ScaleTarget
	if s.target != config.ScaleAuto {
		return nil
	}

	var place fleet.Place
	var err error
	if set.AnyOnSQS() { // embedded queues cannot be shared with other instances
		place, err = fleet.Find(ctx, s.opts.aws().Region, s.opts.Logger.SDK)
	}
	switch {
	case err != nil:
		s.leaveSize("unknown whether something else scales the instances: " + err.Error())
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
		event.Scaling.Log(s.opts.log("scale"), slog.LevelInfo, "scale target chosen", "target", s.target,
			"min_size", least, "max_size", most, "hint", "--scale-target none keeps the size")
	}
	return nil
}

func (s *sizing) leaveSize(why string) {
	s.target, s.left = config.ScaleNone, why
	s.opts.log("scale").Warn("size not changed", "reason", why,
		"hint", "add --scale-target asg:GROUP, ecs:CLUSTER/SERVICE or processes to scale anyway, or none")
}

func (s *sizing) isAuto() bool { return s.settings.now().ScaleTarget == config.ScaleAuto }

func (s *sizing) scalesInstances() bool {
	return s.target != config.ScaleProcesses && s.target != config.ScaleNone
}

// mayScaleInstances also returns true if the target is not chosen yet.
func mayScaleInstances(s *config.Settings) bool {
	return s.ScalesInstances() || s.ScaleTarget == config.ScaleAuto && s.AnyOnSQS()
}

// startReplicas ignores a bundle's group sizes, so that an app that can run only once per machine still starts.
func (s *sizing) startReplicas() int {
	if s.isAuto() {
		return 1
	}
	return s.settings.now().ProcessesMin
}
