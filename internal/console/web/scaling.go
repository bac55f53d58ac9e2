package web

import (
	"fmt"
	"strings"
	"time"

	"tendril/api"
)

var scalingScreens = []screen{{path: "/scaling", entry: "Scaling", view: "scaling", load: (*visit).scaling}}

// scalingPage describes scaling. If Scaling is nil the size is fixed, and the decisions are advice.
type scalingPage struct {
	Scaling *api.Scaling
	api.ScaleDecisions
	Backlog int64
	Oldest  time.Duration
	Desired int
	Ready   int
	Last    *api.ScaleInputs
	None    string
}

func (v *visit) scaling() (any, error) {
	page := &scalingPage{Scaling: v.status.Scaling}
	now, err := v.api.Scale(v.ctx)
	if isConflict(err) {
		page.None = problemOf(err).Message
		return page, nil
	}

	if err != nil {
		return nil, err
	}

	page.Backlog = now.Backlog
	page.Oldest = time.Duration(now.OldestSeconds) * time.Second
	page.Desired = now.Desired
	if page.ScaleDecisions, err = v.api.ScaleDecisions(v.ctx); err != nil {
		return nil, err
	}
	if page.Scaling != nil {
		page.Ready = page.Scaling.Ready
	}

	page.Decisions = page.Decisions[:min(len(page.Decisions), pageSize)]
	if len(page.Decisions) > 0 {
		page.Last = page.Decisions[0].Inputs
	}

	return page, nil
}

// measured formats an input of a decision, "–" if unknown.
func measured(value *float64, unit string) string {
	if value == nil {
		return "–"
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %s", *value, unit))
}

func sizes(target string) string {
	kind, name, found := strings.Cut(target, ":")
	switch {
	case target == "processes":
		return "Replicas of the app on this machine"
	case kind == "asg" && found:
		return "Instances of the Auto Scaling group " + name
	case kind == "ecs" && found:
		return "Tasks of the Amazon ECS service " + name
	case target == "publish":
		return "Figures are published; something else scales"
	}
	return "Nothing"
}
