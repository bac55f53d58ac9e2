package app

import (
	"context"

	"tendril/api"
)

// SharedVersion identifies a version deployed to all instances. The zero value means that a version was deployed only
// to this instance.
type SharedVersion struct {
	Number int
	Name   string
	By     string
}

// DeployShared is [App.Deploy] for an archive deployed to all instances.
func (a *App) DeployShared(ctx context.Context, archive string, shared SharedVersion) (api.DeployResult, error) {
	if a.opts.stopping() {
		return api.DeployResult{}, ErrStopped
	}
	v, err := a.importVersion(archive, nil)
	if err != nil {
		return api.DeployResult{}, err
	}
	v.shared = shared
	v.origin.source, v.origin.by = shared.Name, shared.By
	return a.deploy(ctx, v)
}

// Examine returns why a folder or archive cannot be deployed, or nil. It runs none of the version's code.
func (a *App) Examine(path string) error {
	v, err := a.importVersion(path, nil)
	if err == nil {
		a.removeCopy(v.dir())
	}
	return err
}

// SharedNumber returns the number of the serving [SharedVersion] or, before the start, of the first.
func (a *App) SharedNumber() int {
	v := a.replicas.current()
	if v.number == 0 {
		return a.opts.Shared.Number
	}
	return v.shared.Number
}
