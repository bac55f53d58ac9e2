package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/observe/event"
	"tendril/internal/supervisor"
)

// Deploy replaces the serving version with a folder or archive. If path is "", it redeploys the serving version.
func (a *App) Deploy(ctx context.Context, path string) (api.DeployResult, error) {
	if a.opts.stopping() {
		return api.DeployResult{}, ErrStopped
	}

	var v version
	var err error
	if path == "" {
		v, err = a.openAgain(a.replicas.current())
	} else {
		v, err = a.importVersion(path, nil)
	}
	if err != nil {
		return api.DeployResult{}, err
	}

	v.origin.by = deployedBy(ctx)
	return a.deploy(ctx, v)
}

// openAgain marks the version as a restart if its files have not changed.
func (a *App) openAgain(old version) (v version, err error) {
	restart := len(old.changedFiles()) == 0
	switch {
	case old.bundle == nil:
		v = version{command: old.command}
	case old.origin.isCopy && old.copied == nil:
		v, err = a.open(old.dir(), "")
		v.origin.source, v.origin.isCopy = old.origin.source, old.origin.isCopy
	default:
		v, err = a.importVersion(old.origin.source, nil)
	}
	v.restart = restart
	v.shared = old.shared
	return v, err
}

// Reload deploys the changed files of the serving version's folder or, if that is a copy, of its source. It returns nil
// if there are none. The processes keep running if only settings changed that they do not use.
func (a *App) Reload(ctx context.Context) (*api.ReloadResult, error) {
	v := a.replicas.current()
	files := v.changedFiles()
	if len(files) == 0 {
		return nil, nil
	}
	next, err := a.openChanged(v, files)
	if err != nil {
		return nil, err
	}

	next.origin.by = deployedBy(ctx)
	next.shared = v.shared
	if next.configOnly && a.isSameApp(v, next) {
		result, err := a.configure(ctx, next)
		return &result, err
	}
	deployed, err := a.deploy(ctx, next)
	return &api.ReloadResult{Deployed: &deployed, Settings: next.change.Live, Later: next.change.Later}, err
}

// openChanged sets configOnly if only settings changed, but no container commands or applied machine sections.
func (a *App) openChanged(v version, files []string) (version, error) {
	if v.copied == nil {
		next, err := a.open(v.bundle.Dir, "")
		next.origin, next.origin.of = v.origin, 0
		next.configOnly = err == nil && areSettings(files) && a.hasSameCommands(next, v)
		return next, err
	}

	if areSettings(files) {
		next, err := a.importSettings(v, files)
		if err != nil || next.configOnly {
			return next, err
		}
		a.removeCopy(next.dir())
	}
	return a.importVersion(v.origin.source, nil)
}

func (a *App) importSettings(v version, files []string) (version, error) {
	copied := fileStamps(v.origin.source)
	next, err := a.importVersion(v.dir(), func(dir string) error { return replaceFiles(dir, v.origin.source, files) })
	if err != nil {
		return version{}, err
	}
	next.origin.source = v.origin.source
	next.copied = copied
	next.configOnly = a.hasSameCommands(next, v)
	return next, nil
}

func (a *App) hasSameCommands(v, other version) bool {
	return v.bundle.SameCommands(other.bundle) && a.opts.sameMachine(v.bundle, other.bundle)
}

func replaceFiles(dir, from string, names []string) error {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}

		text, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// importVersion unpacks an archive or copies a folder. change, which may be nil, then modifies the files.
func (a *App) importVersion(source string, change func(dir string) error) (version, error) {
	isArchive, err := bundle.IsArchive(source)
	if err != nil {
		return version{}, err
	}

	var copied map[string]string
	if !isArchive {
		copied = fileStamps(source)
		b, err := bundle.Open(source)
		if err == nil {
			err = a.opts.Check(b) // the copy would hide that other users can write the files
		}
		if err != nil {
			return version{}, Refused(err)
		}
	}

	dir, err := bundle.UnpackVersion(a.opts.Settings().DataDir, source, time.Now())
	if err != nil {
		return version{}, Refused(err)
	}

	v, err := a.openCopy(dir, source, isArchive, change)
	if err != nil {
		a.removeCopy(dir)
		return version{}, err
	}
	v.origin = origin{source: source, isCopy: true}
	v.unpacked = true
	v.copied = copied
	return v, nil
}

func (a *App) openCopy(dir, source string, isArchive bool, change func(dir string) error) (version, error) {
	if change != nil {
		if err := change(dir); err != nil {
			return version{}, err
		}
	}
	if err := Share(a.opts.Settings(), dir, isArchive); err != nil {
		return version{}, err
	}
	if !isArchive {
		return a.open(dir, "")
	}
	return a.open(dir, source)
}

// SourceFolder returns the folder that the serving version runs in or was copied from, or "".
func (a *App) SourceFolder() string {
	v := a.replicas.current()
	if v.copied != nil && isFolder(v.origin.source) {
		return v.origin.source
	}
	return v.dir()
}

func (a *App) open(path, archive string) (v version, err error) {
	err = errors.Join(Share(a.opts.Settings(), path, false), bundle.AllowTraversalByAll(a.opts.Settings().DataDir, path))
	if err != nil {
		return version{}, err
	}
	v = version{command: a.opts.Command, read: readFiles(path), origin: origin{source: path}}
	if v.bundle, err = bundle.Open(path); err != nil {
		return version{}, Refused(err)
	}

	v.bundle.Archive = archive // Check also checks who can change the archive
	if len(a.opts.Command) == 0 {
		if len(v.bundle.Processes) == 0 {
			v.bundle = v.bundle.WithDefault()
		}
		if _, err := v.bundle.Web(); err != nil {
			return version{}, Refused(err)
		}
	}

	if err := a.opts.Check(v.bundle); err != nil {
		return version{}, Refused(err)
	}
	if v.change, err = a.opts.Change(v.bundle); err != nil {
		return version{}, Refused(err)
	}
	return v, nil
}

// Share gives the app's user access to a version's folder. For fresh, see [bundle.ShareVersion].
func Share(s *config.Settings, dir string, fresh bool) error {
	if os.Geteuid() != 0 || s.AppUser == "" {
		return nil
	}
	_, gid, err := supervisor.IDsOf(s.AppUser)
	if err != nil {
		return fmt.Errorf("--app-user: %w", err)
	}
	return bundle.ShareVersion(s.DataDir, dir, gid, fresh)
}

func (a *App) removeCopy(dir string) {
	if err := bundle.RemoveVersion(dir); err != nil {
		a.opts.Log.Warn("version not removed", "err", err)
	}
}

func (a *App) prune(v version) {
	if !v.unpacked {
		return
	}
	var inUse []string
	for _, r := range a.replicas.balancer.all() {
		inUse = append(inUse, r.version.dir()) // replicas may still run in earlier folders
	}
	if err := bundle.PruneVersions(v.dir(), inUse...); err != nil {
		a.opts.Log.Warn("old versions not removed", "err", err)
	}
}

// Refused returns the console's error for an invalid version. It returns err unchanged if a file is missing.
func Refused(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	refusal := &api.Error{Status: http.StatusBadRequest, Message: "the version cannot be deployed: " + err.Error(),
		Hint: "'tendril check' shows the problem"}
	var settings *config.Error
	if errors.As(err, &settings) {
		for _, p := range settings.Problems {
			refusal.Details = append(refusal.Details, api.Detail{Text: p.String(), Hint: p.Hint})
		}
	}
	return refusal
}

func (a *App) beginDeployment(ctx context.Context, v *version) (context.Context, context.CancelCauseFunc) {
	v.number = a.numbers.next()
	ctx, cancel := a.untilStop(ctx)
	a.deployments.begin(a.replicas.current(), *v, cancel)
	return ctx, cancel
}

func (a *App) deploy(ctx context.Context, v version) (api.DeployResult, error) {
	ctx, cancel := a.beginDeployment(ctx, &v)
	defer cancel(nil)
	began := time.Now()
	old := a.replicas.current()
	a.logDeploymentStarted(old, v)

	err := a.prepare(ctx, &v)
	if err != nil {
		a.logNotPrepared(ctx, v, err)
	} else {
		err = a.replicas.deploy(ctx, v)
	}
	if err != nil {
		return api.DeployResult{}, a.undoDeployment(ctx, v, err)
	}
	a.prune(v)

	// The caller's context may be done by now, and an abort no longer undoes the switch.
	after, cancelAfter := a.untilStop(context.WithoutCancel(ctx))
	defer cancelAfter(nil)
	a.deployments.setAbort(cancelAfter)
	a.quarantine.stopUnused()
	if err := a.completeDeployment(after, v); err != nil {
		return api.DeployResult{}, err
	}
	return api.DeployResult{From: old.String(), To: v.String(), DurationMS: time.Since(began).Milliseconds(),
		Of: v.origin.of, Later: v.change.Later}, nil
}

func (a *App) logDeploymentStarted(old, v version) {
	attrs := []any{"version", v.displayed(), "previous", old.displayed(), "folder", v.dir()}
	if v.origin.of != 0 {
		attrs = append(attrs, "rollback_to", v.origin.of)
	}
	event.Deploy.Log(a.opts.Log, slog.LevelInfo, "deployment started", attrs...)
}

func (a *App) prepare(ctx context.Context, v *version) error {
	if err := a.publish(v); err != nil {
		return err
	}
	if err := a.steps.run(ctx, *v, beforeStart); err != nil {
		return err
	}
	v.recordFiles()
	return nil
}

func (a *App) logNotPrepared(ctx context.Context, v version, err error) {
	message := "deployment failed, the previous version is still serving"
	switch {
	case isAborted(ctx): // logged by undoDeployment
		return
	case isStopped(ctx):
		message = "deployment abandoned"
	}
	event.Deploy.Log(a.opts.Log, slog.LevelError, message, "version", v.displayed(), "err", err)
}

func (a *App) undoDeployment(ctx context.Context, v version, cause error) error {
	if isAborted(ctx) {
		cause = context.Cause(ctx)
		event.Deploy.Log(a.opts.Log, slog.LevelWarn, "deployment aborted, the previous version is still serving", "version", v.displayed(), "err", cause)
	}
	a.steps.endLeftBehind(v.isNumber)
	a.removeFacts(v.facts)
	if v.unpacked {
		a.removeCopy(v.dir())
	}
	if !isStopped(ctx) {
		a.recordFailed(v, cause)
	}
	return a.endFailed(ctx, api.DeployRolledBack, cause)
}

func (a *App) configure(ctx context.Context, v version) (api.ReloadResult, error) {
	ctx, cancel := a.beginDeployment(ctx, &v)
	defer cancel(nil)

	err := a.prepare(ctx, &v)
	a.removeFacts(v.facts)
	if err == nil {
		v.facts = a.replicas.current().facts // the processes still use the previous values
		err = a.replicas.adopt(ctx, v)
	}
	if err != nil {
		return api.ReloadResult{}, a.undoConfiguration(ctx, v, err)
	}

	a.opts.Apply(v.change, false)
	a.RefreshFacts()
	a.recordServing(v)
	a.prune(v)
	if err := a.completeDeployment(ctx, v); err != nil {
		return api.ReloadResult{}, err
	}
	return api.ReloadResult{Settings: v.change.Live, Later: v.change.Later}, nil
}

func (a *App) undoConfiguration(ctx context.Context, v version, cause error) error {
	a.steps.endLeftBehind(v.isNumber)
	if v.unpacked {
		a.removeCopy(v.dir())
	}
	if isAborted(ctx) {
		cause = context.Cause(ctx)
	}
	event.Deploy.Log(a.opts.Log, slog.LevelError, "settings not changed, the previous ones are still in force", "err", cause)
	return a.endFailed(ctx, api.DeployRolledBack, cause)
}

func (a *App) completeDeployment(ctx context.Context, v version) error {
	a.opts.AdoptTasks(ctx, v.bundle)
	if err := a.steps.run(ctx, v, afterStart); err != nil {
		event.Deploy.Log(a.opts.Log, slog.LevelError, "hook failed, the new version is serving", "version", v.displayed(), "err", err)
		return a.endFailed(ctx, api.DeployFailed, err)
	}
	a.deployments.end(api.DeployDone, nil)
	return nil
}

func (a *App) untilStop(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.run, func() { cancel(ErrStopped) })
	return ctx, func(cause error) { stop(); cancel(cause) }
}

func (a *App) endFailed(ctx context.Context, state string, err error) error {
	a.deployments.end(state, err)
	failed := &api.DeployError{Switched: state == api.DeployFailed, Stopped: isStopped(ctx),
		Aborted: isAbortion(state, err), Err: err}
	if process := (*processError)(nil); errors.As(err, &process) {
		failed.Step, failed.Output = process.name, process.output.lines()
	}
	return failed
}

// Abort cancels the deployment in progress or, once the new version is serving, its remaining hooks, and waits until it
// ends. It returns an [*api.Error] if no deployment is in progress or the version is already serving.
func (a *App) Abort(ctx context.Context) (api.Deployment, error) {
	return a.deployments.abortCurrent(ctx)
}

// Deployments returns the last 20 deployments since startup, newest first.
func (a *App) Deployments() []api.Deployment { return a.deployments.newestFirst() }

// Deployment returns the current or last deployment, or nil.
func (a *App) Deployment() *api.Deployment {
	if all := a.deployments.newestFirst(); len(all) > 0 {
		return &all[0]
	}
	return nil
}
