package console

import (
	"context"
	"net/http"

	"tendril/api"
)

// VersionOptions tell of the versions of the app and go back to one. Where no app runs all are nil, and their routes
// answer 409.
type VersionOptions struct {
	// Versions returns the versions that were deployed, the newest first.
	Versions func() []api.AppVersion
	// Rollback replaces the version of the app that runs by one that served before, which its number names; 0 names the
	// last one. ctx and errors are as for [Options].Deploy. The error of status 404 means that there is no such version.
	Rollback func(ctx context.Context, number int) (api.DeployResult, error)
	// AbortDeploy ends the deployment under way before the new version serves, and returns it when it is over.
	AbortDeploy func(ctx context.Context) (api.Deployment, error)
	// RestartProcess restarts one process of the app and returns the name of the one in its place. ctx bounds it; the
	// errors are as for [Options].Deploy, and one of status 404 means that there is no such process.
	RestartProcess func(ctx context.Context, name string) (now string, err error)
}

// checkRollback refuses a number that no version has.
func checkRollback(r *api.RollbackRequest) error {
	if r.Version < 0 {
		return api.NewError(http.StatusBadRequest, "versions have numbers from 1", "'tendril versions' lists them")
	}
	return nil
}

func (e *environmentRoutes) versions(*call) (api.VersionList, error) {
	all := e.opts.Versions.Versions()
	if all == nil {
		all = []api.AppVersion{}
	}
	return api.VersionList{Versions: all}, nil
}

// abortDeploy answers when the deployment is over, or 409 when there is none or the new version is serving already.
func (e *environmentRoutes) abortDeploy(c *call) (api.Deployment, error) {
	ctx, cancel := bounded(c.ctx, e.closed, api.MaxDeploy)
	defer cancel()
	return e.opts.Versions.AbortDeploy(ctx)
}

// restartProcess answers as deploy does.
func (e *environmentRoutes) restartProcess(c *call) (api.RestartedProcess, error) {
	ctx, cancel := bounded(context.WithoutCancel(c.ctx), e.closed, api.MaxDeploy)
	defer cancel()
	now, err := e.opts.Versions.RestartProcess(ctx, c.name)
	return api.RestartedProcess{Process: now}, deployRefusal(err)
}

// rollback answers as deploy does.
func (e *environmentRoutes) rollback(c *call, body api.RollbackRequest) (api.DeployResult, error) {
	ctx, cancel := bounded(context.WithoutCancel(c.ctx), e.closed, api.MaxDeploy)
	defer cancel()
	result, err := e.opts.Versions.Rollback(ctx, body.Version)
	return result, deployRefusal(err)
}

func (e *environmentRoutes) scaleDecisions(*call) (api.ScaleDecisions, error) {
	answer := e.opts.Views.ScaleDecisions()
	if answer.Decisions == nil {
		answer.Decisions = []api.ScaleDecision{}
	}
	return answer, nil
}

func (e *environmentRoutes) instances(*call) (api.Instances, error) {
	return e.opts.Views.Instances(), nil
}
