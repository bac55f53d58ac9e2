package web

import (
	"context"
	"time"

	"tendril/api"
	"tendril/internal/observe/event"
)

var deploymentScreens = []screen{{path: "/deployments", entry: "Deployments", view: "deployments",
	load: (*visit).loadDeployments, fleet: true}}

var deploymentActs = []act{
	{"/deployments/deploy", func(v *visit) (string, error) {
		return v.startDeployment(func(ctx context.Context) (api.DeployResult, error) {
			return v.api.Deploy(ctx, v.field("path"))
		})
	}},
	{"/deployments/abort", func(v *visit) (string, error) {
		d, err := v.api.AbortDeploy(v.ctx)
		return "The deployment of " + d.To + " was aborted.", err
	}},
	{"/deployments/rollback", func(v *visit) (string, error) {
		number, err := v.number("version")
		if err != nil {
			return "", err
		}
		return v.startDeployment(func(ctx context.Context) (api.DeployResult, error) {
			return v.api.Rollback(ctx, number)
		})
	}},
}

func (v *visit) startDeployment(deploy func(context.Context) (api.DeployResult, error)) (string, error) {
	return v.waitBriefly("The deployment is in progress.", func(ctx context.Context) (string, error) {
		done, err := deploy(ctx)
		if done.Rollout != 0 {
			return "The deployment of " + done.To + " to all instances is in progress.", err
		}
		return "The environment runs " + done.To + " now.", err
	})
}

func (v *visit) waitBriefly(pending string, act func(context.Context) (string, error)) (string, error) {
	var done string
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		done, err = act(v.ctx)
	}()

	select {
	case <-ended:
		return done, err
	case <-time.After(v.site.patience):
		return pending, nil
	}
}

const shownDeployments = 20

type deploymentsPage struct {
	NoApp    string
	Versions []api.AppVersion
	Live     *api.AppVersion
	Latest   *api.Deployment
	// Everywhere means that deployments change all instances, Acts that the page's actions apply to the shown
	// instances.
	Everywhere, Acts bool
	Rollout          string
	Events           []eventRow
}

func (v *visit) loadDeployments() (any, error) {
	st, err := v.subjectStatus()
	if err != nil {
		return nil, err
	}

	page := &deploymentsPage{Latest: st.Deployment, Everywhere: v.deploysEverywhere()}
	page.Acts = page.Everywhere || v.subject().This
	page.Versions, err = fromOne(v, v.subject(), func(ctx context.Context, c *api.Client) ([]api.AppVersion, error) { return c.Versions(ctx) })
	if isConflict(err) {
		page.NoApp = refusalOf(err).Message
	} else if err != nil {
		return nil, err
	}

	for i := range page.Versions {
		switch version := &page.Versions[i]; version.State {
		case api.VersionLive:
			page.Live = version
		case api.VersionDeploying:
			all, err := v.api.Instances(v.ctx)
			if err != nil {
				return nil, err
			}
			page.Rollout, _ = all.Rollout(version.Number)
		}
	}

	events, err := v.newestEvents(api.EventFilter{Kinds: []string{string(event.Deploy)}, Limit: shownDeployments})
	if err != nil && !isConflict(err) {
		return nil, err
	}
	page.Events = eventRows(events)
	return page, nil
}
