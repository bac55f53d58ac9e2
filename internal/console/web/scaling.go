package web

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/api"
)

var scalingScreens = []screen{{path: "/scaling", entry: "Scaling", view: "scaling", load: (*visit).loadScaling, fleet: true}}

// Scaling is nil if the size is fixed. The decisions are then only advice.
type scalingPage struct {
	Scaling *api.Scaling
	api.ScaleDecisions
	Backlog int64
	Oldest  time.Duration
	Desired int
	Last    *api.ScaleInputs
	None    string
	Subject string
}

func (v *visit) loadScaling() (any, error) {
	subject := v.subject()
	if v.Fleet != nil && v.Fleet.Chosen == nil {
		if i := slices.IndexFunc(v.Fleet.All, func(one api.KnownInstance) bool { return one.Leads }); i >= 0 {
			subject = v.Fleet.All[i]
		}
	}

	page, err := fromOne(v, subject, func(ctx context.Context, c *api.Client) (*scalingPage, error) {
		return v.readScaling(ctx, c, &subject)
	})
	if page == nil && err == nil {
		page = &scalingPage{Subject: subject.Name, None: "The scaling of " + subject.Name + " is unknown"}
	}
	return page, err
}

func (v *visit) readScaling(ctx context.Context, c *api.Client, subject *api.KnownInstance) (*scalingPage, error) {
	page := &scalingPage{Subject: subject.Name}
	if subject.Leads {
		page.Subject += ", the leader"
	}

	st := v.Status
	if !subject.This {
		var err error
		if st, err = c.Status(ctx); err != nil {
			return page, err
		}
	}
	page.Scaling = st.Scaling
	return page, page.readDecisions(ctx, c)
}

func (page *scalingPage) readDecisions(ctx context.Context, c *api.Client) error {
	now, err := c.Scale(ctx)
	if isConflict(err) {
		page.None = refusalOf(err).Message
		return nil
	}
	if err != nil {
		return err
	}

	page.Backlog = now.Backlog
	page.Oldest = time.Duration(now.OldestSeconds) * time.Second
	page.Desired = now.Desired
	if page.ScaleDecisions, err = c.ScaleDecisions(ctx); err != nil {
		return err
	}
	page.Decisions = page.Decisions[:min(len(page.Decisions), pageSize)]
	if len(page.Decisions) > 0 {
		page.Last = page.Decisions[0].Inputs
	}
	return nil
}

func measured(value *float64, unit string) string {
	if value == nil {
		return "–"
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %s", *value, unit))
}

func scaledText(target string) string {
	kind, name, found := strings.Cut(target, ":")
	switch {
	case target == "processes":
		return "Replicas of the app on this machine"
	case kind == "asg" && found:
		return "Instances of the Auto Scaling group " + name
	case kind == "ecs" && found:
		return "Tasks of the Amazon ECS service " + name
	case target == "publish":
		return "Metrics are published; something else sets the size"
	}
	return "Nothing"
}
