package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/observe/event"
	"tendril/internal/supervisor"
)

// deployer replaces the version of the app. Its methods that deploy are called by the holder
// of the token of Changing.
type deployer struct {
	opts       *Options
	run        context.Context // done when the app is stopped for good
	steps      *stepRunner
	numbers    versionNumbers
	versions   keptVersions
	replicas   *replicaSet
	quarantine *quarantine
	isSameApp  func(v, next version) bool
	factsMu    sync.Mutex // is held while facts are changed

	mu   sync.Mutex
	last *api.Deployment // nil before the first
	// abort ends last with a cause as a failure would, and over is closed when it has ended.
	abort context.CancelCauseFunc
	over  chan struct{}
	past  []api.Deployment // those before last, the oldest first
}

// keptDeployments is how many deployments are remembered.
const keptDeployments = 20

// Deploy replaces the version by that in a folder or an archive, "" for what runs now: its archive as it was unpacked, or
// its folder as it is now.
func (d *deployer) Deploy(ctx context.Context, path string) (api.DeployResult, error) {
	if d.opts.stopping() {
		return api.DeployResult{}, ErrStopped
	}
	old := d.replicas.current()
	v := version{command: old.command}
	restart := path == "" && len(old.changedFiles()) == 0
	var err error
	switch {
	case path == "" && old.bundle == nil:
	case path == "" && old.isCopy && old.copied == nil: // an archive, or what was rolled back to
		v, err = d.open(old.dir(), "")
		v.source, v.isCopy = old.source, old.isCopy
	default:
		v, err = d.take(cmp.Or(path, old.source), nil)
	}
	if err != nil {
		return api.DeployResult{}, err
	}
	v.number, v.restart, v.by = d.numbers.next(), restart, deployedBy(ctx)
	return d.deploy(ctx, old, v)
}

// Reload puts in force what changed in the folder of the version that serves; changed is false
// when nothing of the app did. Where only settings changed the processes stay.
func (d *deployer) Reload(ctx context.Context) (result api.ReloadResult, changed bool, err error) {
	v := d.replicas.current()
	files := v.changedFiles()
	if len(files) == 0 {
		return result, false, nil
	}
	next, err := d.reopen(v, files)
	if err != nil {
		return result, true, err
	}
	next.number, next.by = d.numbers.next(), deployedBy(ctx)
	if next.configOnly && d.isSameApp(v, next) {
		result, err = d.configure(ctx, v, next)
		return result, true, err
	}
	deployed, err := d.deploy(ctx, v, next)
	return api.ReloadResult{Deployed: &deployed, Settings: next.change.Live, Later: next.change.Later}, true, err
}

// reopen opens the version that serves as it is after changes in its folder, or in the folder that it is a copy of.
// Where only settings changed, they are put into a copy of what serves, which has what was built there.
func (d *deployer) reopen(v version, files []string) (next version, err error) {
	settings := areSettings(files)
	isSame := func() bool { return next.bundle.SameCommands(v.bundle) && d.opts.sameMachine(next.bundle, v.bundle) }
	if v.copied == nil {
		next, err = d.open(v.bundle.Dir, "")
		next.origin, next.of = v.origin, 0
		next.configOnly = err == nil && settings && isSame()
		return next, err
	}

	if settings {
		copied := fingerprint(v.source)
		next, err = d.take(v.dir(), func(dir string) error { return replaceFiles(dir, v.source, files) })
		if err != nil || isSame() {
			next.source, next.copied, next.configOnly = v.source, copied, true
			return next, err
		}
		d.removeCopy(next.dir())
	}
	return d.take(v.source, nil)
}

// replaceFiles makes some files of a folder what they are in another one.
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
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take makes a version of an archive or a folder: its files are unpacked or copied, so that what serves is never touched.
// change, if not nil, changes them before they are read.
func (d *deployer) take(source string, change func(dir string) error) (v version, err error) {
	isArchive, err := bundle.IsArchive(source)
	if err != nil {
		return version{}, err
	}
	var copied map[string]string
	if !isArchive {
		copied = fingerprint(source)
		b, err := bundle.Open(source)
		if err == nil {
			err = d.opts.Check(b) // also whether others can change it, which the copy does not show
		}
		if err != nil {
			return version{}, Refused(err)
		}
	}

	dir, err := bundle.UnpackVersion(d.opts.Settings.DataDir, source, time.Now())
	if err != nil {
		return version{}, Refused(err)
	}
	if change != nil {
		err = change(dir)
	}
	if err == nil {
		err = Share(d.opts.Settings, dir, isArchive) // a copy has the permissions of its folder
	}
	if err == nil {
		archive := ""
		if isArchive {
			archive = source
		}
		v, err = d.open(dir, archive)
	}
	if err != nil {
		d.removeCopy(dir)
		return version{}, err
	}
	v.origin, v.unpacked, v.copied = origin{source: source, isCopy: true}, true, copied
	return v, nil
}

// SourceFolder is the folder that the version that serves is a copy of, or runs in; "" for a command without one.
func (d *deployer) SourceFolder() string {
	if v := d.replicas.current(); v.copied == nil || !isFolder(v.source) {
		return v.dir()
	}
	return d.replicas.current().source
}

// open opens the folder of a version, which was unpacked from an archive just now or "", and finds out how its settings
// differ from those in force.
func (d *deployer) open(path, archive string) (v version, err error) {
	err = errors.Join(Share(d.opts.Settings, path, false), bundle.LetEverybodyPass(d.opts.Settings.DataDir, path))
	if err != nil {
		return version{}, err
	}
	v = version{command: d.opts.Command, read: readFiles(path), origin: origin{source: path}}
	if v.bundle, err = bundle.Open(path); err != nil {
		return version{}, Refused(err)
	}
	v.bundle.Archive = archive // others may decide what is in it
	if len(d.opts.Command) == 0 {
		if len(v.bundle.Processes) == 0 {
			v.bundle = v.bundle.WithDefault()
		}
		if _, err := v.bundle.Web(); err != nil {
			return version{}, Refused(err)
		}
	}
	if err := d.opts.Check(v.bundle); err != nil {
		return version{}, Refused(err)
	}
	if v.change, err = d.opts.Change(v.bundle); err != nil {
		return version{}, Refused(err)
	}
	return v, nil
}

// Share gives the app's user access to the folder of a version; fresh tells that it
// was unpacked here.
func Share(s *config.Settings, dir string, fresh bool) error {
	if os.Geteuid() != 0 || s.AppUser == "" {
		return nil // the app's user is the one who runs tendril
	}
	_, gid, err := supervisor.IDsOf(s.AppUser)
	if err != nil {
		return fmt.Errorf("--app-user: %w", err)
	}
	return bundle.ShareVersion(s.DataDir, dir, gid, fresh)
}

// removeCopy removes an unpacked archive, or the copy of a folder, that does not serve.
func (d *deployer) removeCopy(dir string) {
	if err := bundle.RemoveVersion(dir); err != nil {
		d.opts.Log.Warn("removing a version failed", "err", err)
	}
}

// prune removes the oldest copies, now that a new one serves.
func (d *deployer) prune(v version) {
	if !v.unpacked {
		return
	}
	var inUse []string
	for _, r := range d.replicas.balancer.find(func(*replica) bool { return true }) {
		inUse = append(inUse, r.version.dir()) // also of old versions that finish, and where only settings changed since
	}
	if err := bundle.PruneVersions(v.dir(), inUse...); err != nil {
		d.opts.Log.Warn("removing old versions failed", "err", err)
	}
}

// Refused is the error for callers of the console that a version is at fault; err says why.
func Refused(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	refusal := &api.Error{Status: http.StatusBadRequest, Message: "the version cannot be deployed: " + err.Error(),
		Hint: "'tendril check' says what is wrong with it"}
	var settings *config.Error
	if errors.As(err, &settings) {
		for _, p := range settings.Problems {
			refusal.Details = append(refusal.Details, api.Detail{Text: p.String(), Hint: p.Hint})
		}
	}
	return refusal
}

// deploy runs the steps of the new version, and starts its replicas beside those that serve;
// these get the deliveries once all are ready, and the old ones finish and end while other changes go on. On any
// error before that the old version is still serving.
func (d *deployer) deploy(ctx context.Context, old, v version) (api.DeployResult, error) {
	ctx, cancel := d.untilStop(ctx)
	defer cancel(nil)
	began := time.Now()
	d.begin(old, v, cancel)
	attrs := []any{"version", v.number, "previous", old.number, "folder", v.dir()}
	if v.of != 0 {
		attrs = append(attrs, "rollback_to", v.of)
	}
	event.Deploy.Log(d.opts.Log, slog.LevelInfo, "deployment started", attrs...)
	err := d.publish(&v)
	if err == nil {
		err = d.steps.run(ctx, v, beforeStart)
	}
	switch {
	case err == nil:
		v.recordFiles()
		err = d.replicas.deploy(ctx, v)
	case isStopped(ctx):
		event.Deploy.Log(d.opts.Log, slog.LevelError, "deployment abandoned", "version", v.number, "err", err)
	case !isAborted(ctx):
		event.Deploy.Log(d.opts.Log, slog.LevelError, "deployment failed, the old version is still serving", "version", v.number, "err", err)
	}
	if err != nil && isAborted(ctx) {
		err = context.Cause(ctx)
		event.Deploy.Log(d.opts.Log, slog.LevelWarn, "deployment aborted, the old version is still serving", "version", v.number, "err", err)
	}
	if err != nil {
		d.steps.endLeftBehind(v.isNumber)
		d.removeFacts(v.facts)
		d.forget(ctx, v, err)
		return api.DeployResult{}, d.fail(ctx, api.DeployRolledBack, err)
	}
	d.prune(v)

	// The caller's time may be over by now, and an abort has been too late for the switch.
	after, over := d.untilStop(context.WithoutCancel(ctx))
	defer over(nil)
	d.setAbort(over)
	d.quarantine.stopUnused()
	if err := d.finish(after, v); err != nil {
		return api.DeployResult{}, err
	}
	return api.DeployResult{From: old.String(), To: v.String(), DurationMS: time.Since(began).Milliseconds(),
		Of: v.of, Later: v.change.Later}, nil
}

// configure puts a version in force whose app is the one that runs: the hooks of a change of
// settings run, and the processes stay.
func (d *deployer) configure(ctx context.Context, old, v version) (api.ReloadResult, error) {
	ctx, cancel := d.untilStop(ctx)
	defer cancel(nil)
	d.begin(old, v, cancel)
	err := d.publish(&v)
	if err == nil {
		err = d.steps.run(ctx, v, beforeStart)
	}
	d.removeFacts(v.facts)
	if err == nil {
		v.recordFiles()
		v.facts = old.facts // which the processes know
		err = d.replicas.adopt(ctx, v)
	}
	if err != nil {
		d.steps.endLeftBehind(v.isNumber)
		if v.unpacked {
			d.removeCopy(v.dir())
		}
		if isAborted(ctx) {
			err = context.Cause(ctx)
		}
		event.Deploy.Log(d.opts.Log, slog.LevelError, "changing the settings failed, the old ones are still in force", "err", err)
		return api.ReloadResult{}, d.fail(ctx, api.DeployRolledBack, err)
	}
	d.opts.Apply(v.change, false)
	d.RefreshFacts()
	d.remember(v)
	d.prune(v)
	if err := d.finish(ctx, v); err != nil {
		return api.ReloadResult{}, err
	}
	return api.ReloadResult{Settings: v.change.Live, Later: v.change.Later}, nil
}

// finish does what follows once a version serves: its tasks, and the hooks after the start.
func (d *deployer) finish(ctx context.Context, v version) error {
	d.opts.AdoptTasks(ctx, v.bundle)
	if err := d.steps.run(ctx, v, afterStart); err != nil {
		event.Deploy.Log(d.opts.Log, slog.LevelError, "hook failed, the new version is serving", "version", v.number, "err", err)
		return d.fail(ctx, api.DeployFailed, err)
	}
	d.end(api.DeployDone, nil)
	return nil
}

// untilStop returns a context that ends with ctx, and with the cause [ErrStopped] when the
// app is stopped for good.
func (d *deployer) untilStop(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.run, func() { cancel(ErrStopped) })
	return ctx, func(cause error) { stop(); cancel(cause) }
}

// Abort ends the deployment under way as a failure would, and returns it when it is over: the previous version is
// still serving. The error is a [*api.Error] where none is under way, or where the new version is serving already:
// then only its last hooks were ended.
func (d *deployer) Abort(ctx context.Context) (api.Deployment, error) {
	d.mu.Lock()
	last, abort, over := d.last, d.abort, d.over
	if last == nil || last.Over() {
		d.mu.Unlock()
		return api.Deployment{}, &api.Error{Status: http.StatusConflict, Message: "no deployment is in progress",
			Hint: "'tendril versions' lists what was deployed"}
	}
	d.mu.Unlock()
	abort(fmt.Errorf("%w by %s", errAborted, deployedBy(ctx)))
	select {
	case <-over:
	case <-ctx.Done():
		return api.Deployment{}, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if last.State != api.DeployRolledBack {
		return *last, &api.Error{Status: http.StatusConflict, Message: last.To + " is serving already",
			Hint: "'tendril rollback' goes back to " + last.From}
	}
	return *last, nil
}

// fail ends the deployment in a state, and returns the error for the console.
func (d *deployer) fail(ctx context.Context, state string, err error) error {
	d.end(state, err)
	failed := &api.DeployError{Switched: state == api.DeployFailed, Stopped: isStopped(ctx),
		Aborted: state == api.DeployRolledBack && errors.Is(err, errAborted), Err: err}
	if step := (*stepError)(nil); errors.As(err, &step) {
		failed.Step, failed.Output = step.name, step.output()
	}
	return failed
}

func (d *deployer) begin(old, v version, abort context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abort, d.over = abort, make(chan struct{})
	if d.last != nil {
		d.past = append(d.past, *d.last)
		d.past = d.past[max(len(d.past)-keptDeployments+1, 0):]
	}
	d.last = &api.Deployment{State: api.DeployPreparing, From: old.String(), To: v.String(), Since: time.Now()}
}

// setAbort changes what an abort of the deployment under way does.
func (d *deployer) setAbort(abort context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abort = abort
}

// update changes the deployment under way, if there is one.
func (d *deployer) update(change func(last *api.Deployment)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil && !d.last.Over() {
		change(d.last)
	}
}

func (d *deployer) setState(state string) {
	d.update(func(last *api.Deployment) { last.State, last.Step = state, "" })
}

func (d *deployer) setStep(name string) {
	d.update(func(last *api.Deployment) { last.Step = name })
}

func (d *deployer) end(state string, err error) {
	d.update(func(last *api.Deployment) {
		last.State, last.Ended = state, time.Now()
		if err != nil {
			last.Error, last.Aborted = err.Error(), state == api.DeployRolledBack && errors.Is(err, errAborted)
		}
		close(d.over)
	})
}

// Deployments returns the last 20 deployments since the start, the newest first.
func (d *deployer) Deployments() []api.Deployment {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Clone(d.past)
	if d.last != nil {
		all = append(all, *d.last)
	}
	slices.Reverse(all)
	return all
}

// Deployment returns the deployment under way, or the last one; nil before the first.
func (d *deployer) Deployment() *api.Deployment {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		return nil
	}
	last := *d.last
	return &last
}
