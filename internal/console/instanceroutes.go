package console

import (
	"context"

	"tendril/api"
)

// VersionOptions manage the app's versions. If tendril has no app to run, all fields and [Options].Deploy are nil, and
// their routes return 409.
type VersionOptions struct {
	// Versions lists the versions. With latest, it reads the registry first, as Rollback does.
	Versions func(ctx context.Context, latest bool) ([]api.AppVersion, error)
	// Rollback redeploys the version with the given number; 0 means the previous one. Context and errors are as for
	// [Options].Deploy, with status 404 for an unknown version.
	Rollback func(ctx context.Context, number int) (api.DeployResult, error)
	// AbortDeploy aborts a deployment whose new version is not serving yet, and waits for its end.
	AbortDeploy func(ctx context.Context) (api.Deployment, error)
	// RestartProcess returns the name of the replacement process. Errors are as for [Options].Deploy, with status 404
	// for an unknown process.
	RestartProcess func(ctx context.Context, name string) (now string, err error)
}

func checkRollback(r *api.RollbackRequest) error {
	if r.Version < 0 {
		return api.BadRequest("versions have numbers from 1", "'tendril versions' lists them")
	}
	return nil
}

func (e *environmentRoutes) versions(c *call) (api.VersionList, error) {
	all, err := e.opts.Versions.Versions(c.ctx, c.query.Get("latest") == "true")
	return api.VersionList{Versions: notNull(all)}, err
}

func (e *environmentRoutes) abortDeploy(c *call) (api.Deployment, error) {
	ctx, cancel := e.bounded(c.ctx, api.MaxDeploy)
	defer cancel()
	return e.opts.Versions.AbortDeploy(ctx)
}

func (e *environmentRoutes) restartProcess(c *call) (api.RestartedProcess, error) {
	ctx, cancel := e.bounded(context.WithoutCancel(c.ctx), api.MaxDeploy)
	defer cancel()
	now, err := e.opts.Versions.RestartProcess(ctx, c.name)
	return api.RestartedProcess{Process: now}, deployRefusal(err)
}

func (e *environmentRoutes) rollback(c *call, body api.RollbackRequest) (api.DeployResult, error) {
	ctx, cancel := e.bounded(context.WithoutCancel(c.ctx), api.MaxDeploy)
	defer cancel()
	result, err := e.opts.Versions.Rollback(ctx, body.Version)
	return result, deployRefusal(err)
}

func (e *environmentRoutes) scaleDecisions(*call) (api.ScaleDecisions, error) {
	answer := e.opts.Views.ScaleDecisions()
	answer.Decisions = notNull(answer.Decisions)
	return answer, nil
}
