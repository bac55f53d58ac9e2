package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tendril/app"
	"tendril/bundle"
	"tendril/config"
	"tendril/console"
)

// ErrNoApp: there is no app here whose version could be changed.
var ErrNoApp = errors.New("this environment runs no app")

func (e *Environment) rolloutOptions() *app.Options {
	note := func(level slog.Level, text string) { e.report.note(level, "deploy", text) }
	return &app.Options{
		ReadyTimeout: e.s.DeployTimeout, DrainTimeout: e.drainLimit, StopTimeout: e.s.AppGrace + 10*time.Second,
		Hurry: e.urgent,
		Events: app.Events{
			Deploying: func(copies int) {
				e.deployState(console.DeployStarting)
				note(slog.LevelInfo, fmt.Sprintf("starting %s of the new version beside the old", plural(copies, "copy", "copies")))
			},
			Switching: func(int) { e.tune(e.app.Version().change, true) },
			Switched: func(took time.Duration) {
				e.deployState(console.DeployDraining)
				e.pid.handOver(e.app.Replicas()[0].(*appCopy))
				note(slog.LevelInfo, "the new version has the messages now, after "+short(took))
			},
			Deployed: func(took time.Duration) { note(slog.LevelInfo, "the old version is gone, after "+short(took)) },
			RolledBack: func(cause error) {
				if errors.Is(cause, app.ErrStopped) {
					note(slog.LevelWarn, "the deployment is given up: "+cause.Error())
					return
				}
				note(slog.LevelError, "rolled back, the old version works on: "+cause.Error())
			},
			Scaled: func(from, to int) {
				note(slog.LevelInfo, fmt.Sprintf("%s of the app, was %d", plural(to, "copy", "copies"), from))
			},
			Forced: func(address string, inWork int, limit time.Duration) {
				why := "the environment stops"
				if limit > 0 {
					why = "they took longer than " + short(limit)
				}
				note(slog.LevelWarn,
					fmt.Sprintf("a copy of the app at %s is stopped with %d messages in work: %s", address, inWork, why))
			},
		},
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// reloadMoment is how long a deployment waits for a reload, which takes no time, before it
// counts as one that comes while another is under way.
const reloadMoment = 250 * time.Millisecond

// DeployPath replaces the app's version by the one in a folder or an archive, ""
// for what runs now, as [console.Options].Deploy has it.
func (e *Environment) DeployPath(ctx context.Context, path string) (console.DeployResult, error) {
	if err := e.awaitStart(ctx); err != nil {
		return console.DeployResult{}, err
	}
	if e.app == nil {
		return console.DeployResult{}, ErrNoApp
	}
	moment := time.NewTimer(reloadMoment)
	defer moment.Stop()
	select {
	case <-e.deploying:
		defer func() { e.deploying <- struct{}{} }()
	case <-moment.C:
		return console.DeployResult{}, app.ErrBusy
	}
	if e.stopping() {
		return console.DeployResult{}, app.ErrStopped
	}
	old := e.app.Version()
	if path == "" && old.bundle != nil {
		path = old.bundle.Dir
	}
	v := version{command: old.command}
	if path != "" {
		var err error
		if v, err = e.openVersion(path); err != nil {
			return console.DeployResult{}, err
		}
	}
	v.number = e.nextVersion()
	return e.deploy(ctx, old, v)
}

// tellRefusal logs why what somebody asked for over the console was not begun. What was
// begun and failed tells by itself.
func (e *Environment) tellRefusal(what string, err error) {
	var begun *console.DeployError
	if err == nil || errors.As(err, &begun) {
		return
	}
	why := strings.ReplaceAll(err.Error(), "\n  ", "; ") // a problem's advice is on a line of its own
	e.report.note(slog.LevelWarn, "deploy", what+" was refused, and nothing changed: "+why)
}

// openVersion opens a folder or an archive, and says how its settings differ from
// those in force.
func (e *Environment) openVersion(path string) (v version, err error) {
	archive, err := bundle.IsArchive(path)
	if err != nil {
		return version{}, err
	}
	if archive {
		if path, err = bundle.UnpackVersion(e.s.DataDir, path, time.Now()); err != nil {
			return version{}, wrongBundle(err)
		}
		defer func() { e.keepVersion(path, err) }()
	}
	if err := e.shareVersion(path, archive); err != nil {
		return version{}, err
	}
	v = version{command: e.Command, read: readFiles(path)}
	b, err := bundle.Open(path)
	if err != nil {
		return version{}, wrongBundle(err)
	}
	if len(e.Command) == 0 {
		if len(b.Processes) == 0 {
			b = b.WithDefault()
		}
		if _, err := b.Web(); err != nil {
			return version{}, wrongBundle(err)
		}
	}
	if err := refuseForeignBundle(b, isMachineRoot()); err != nil {
		return version{}, wrongBundle(err)
	}
	warnOfForeignBundle(e.Logger.Logger, b, isMachineRoot())
	if err := e.checkVersionTasks(b); err != nil {
		return version{}, wrongBundle(err)
	}
	v.bundle = b
	v.change, err = e.change(b)
	return v, err
}

// keepVersion drops an unpacked archive that was refused, or else the oldest ones, but
// none that serves.
func (e *Environment) keepVersion(dir string, refused error) {
	var err error
	if refused != nil {
		err = bundle.RemoveVersion(dir)
	} else {
		serving := ""
		if b := e.app.Version().bundle; b != nil {
			serving = b.Dir
		}
		err = bundle.PruneVersions(dir, serving)
	}
	if err != nil {
		e.report.note(slog.LevelWarn, "deploy", err.Error())
	}
}

// wrongBundle tells the caller of the console that the version is at fault.
func wrongBundle(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	wrong := &console.Error{Status: http.StatusBadRequest, Message: "the version cannot be deployed: " + err.Error(),
		Hint: "'tendril check' says what is wrong with it"}
	var settings *config.Error
	if errors.As(err, &settings) {
		for _, p := range settings.Problems {
			wrong.Details = append(wrong.Details, console.Detail{Text: p.String(), Hint: p.Hint})
		}
	}
	return wrong
}

// change reads all settings again and says how they differ from those in force; b is
// nil where there is no bundle.
func (e *Environment) change(b *bundle.Bundle) (config.Change, error) {
	if e.Load == nil {
		return config.Change{}, nil
	}
	if b != nil && e.Bundle != nil {
		same := *b // the environment has its name, whatever the folder of a version
		same.Called = cmp.Or(e.Bundle.Called, filepath.Base(e.Bundle.Dir))
		b = &same
	}
	cfg, err := e.Load(b)
	if err != nil {
		return config.Change{}, wrongBundle(err)
	}
	e.reportAside(cfg, b)
	change := config.Changed(e.inForce(), cfg)
	if !e.connectionsLive() {
		keepConnections(&change, e.inForce())
	}
	return change, nil
}

// deploy does it: the steps of the new version run, its copies start beside
// those that serve, and get the messages once all are ready; then the old ones
// finish and end. On any error before that the old version works on.
func (e *Environment) deploy(ctx context.Context, old, v version) (console.DeployResult, error) {
	ctx, cancel := e.untilStop(ctx)
	defer cancel()
	began := time.Now()
	e.beginDeployment(old, v, began)
	e.report.note(slog.LevelInfo, "deploy", "deploying "+v.String())
	err := e.runSteps(ctx, v, beforeStart)
	if err != nil {
		text := "not deployed, the old version works on: "
		if stopped(ctx) {
			text = "the deployment is given up: "
		}
		e.report.note(slog.LevelError, "deploy", text+err.Error())
	} else {
		v.look()
		err = e.app.Deploy(ctx, v)
	}
	if err != nil {
		e.endDeployment(console.DeployRolledBack, err)
		return console.DeployResult{}, deployError(ctx, err, false)
	}
	e.deployState(console.DeployFinishing)
	// The caller's time may be over by now: the old version may have taken all of it to finish.
	after, over := e.untilStop(context.WithoutCancel(ctx))
	defer over()
	e.lone.renew()
	e.adoptTasks(after, v.bundle)
	if err := e.runSteps(after, v, afterStart); err != nil {
		e.report.note(slog.LevelError, "deploy",
			"the new version has the messages, but a hook after that failed: "+err.Error())
		e.endDeployment(console.DeployFailed, err)
		return console.DeployResult{}, deployError(after, err, true)
	}
	e.endDeployment(console.DeployDone, nil)
	return console.DeployResult{From: old.String(), To: v.String(), DurationMS: time.Since(began).Milliseconds(),
		Later: v.change.Later}, nil
}

// untilStop returns a context that ends with ctx, and when the app is stopped for good,
// with the cause [app.ErrStopped] then.
func (e *Environment) untilStop(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.appRun, func() { cancel(app.ErrStopped) })
	return ctx, func() { stop(); cancel(nil) }
}

// stopped reports whether ctx ended since the app is stopped for good.
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), app.ErrStopped) }

func deployError(ctx context.Context, err error, switched bool) error {
	failed := &console.DeployError{Switched: switched, Stopped: stopped(ctx), Err: err}
	var step *StepError
	var replica *app.ReplicaError
	switch {
	case errors.As(err, &step):
		failed.Step, failed.Output = step.Name, step.Output
	case errors.As(err, &replica) && !failed.Stopped:
		if c, ok := replica.Replica.(*appCopy); ok {
			failed.Step, failed.Output = c.name(), c.said.lines()
		}
	}
	return failed
}

func (e *Environment) beginDeployment(old, v version, now time.Time) {
	e.copyMu.Lock()
	defer e.copyMu.Unlock()
	e.deployment = &console.Deployment{State: console.DeployPreparing, From: old.String(), To: v.String(), Since: now}
}

func (e *Environment) deployState(state string) {
	e.copyMu.Lock()
	defer e.copyMu.Unlock()
	if e.deployment != nil {
		e.deployment.State, e.deployment.Step = state, ""
	}
}

// deployStep tells which step runs.
func (e *Environment) deployStep(name string) {
	e.copyMu.Lock()
	defer e.copyMu.Unlock()
	if e.deployment != nil && !e.deployment.Over() {
		e.deployment.Step = name
	}
}

func (e *Environment) endDeployment(state string, err error) {
	e.copyMu.Lock()
	defer e.copyMu.Unlock()
	e.deployment.State, e.deployment.Ended = state, time.Now()
	if err != nil {
		e.deployment.Error = err.Error()
	}
}

// lastDeployment is the one under way, or the last one; nil when there was none.
func (e *Environment) lastDeployment() *console.Deployment {
	e.copyMu.Lock()
	defer e.copyMu.Unlock()
	if e.deployment == nil {
		return nil
	}
	d := *e.deployment
	return &d
}

// adoptTasks puts the periodic tasks of a new version in force, which were checked.
func (e *Environment) adoptTasks(ctx context.Context, b *bundle.Bundle) {
	if b == nil || e.s.Cron != "" {
		return
	}
	if t := e.cron.Load(); t != nil {
		t.setFile(b.Cron)
	}
	if err := e.reloadAnyTasks(ctx, b.Cron); err != nil && !errors.Is(err, errNotScheduled) && !e.stopping() {
		e.report.note(slog.LevelError, "periodic", err.Error())
	}
}

// reloadAnyTasks reads the periodic tasks again, or those of the file path ("" for none)
// where none were scheduled before.
func (e *Environment) reloadAnyTasks(ctx context.Context, path string) error {
	t := e.cron.Load()
	switch {
	case t != nil && t.scheduler != nil:
		return e.Reload()
	case path != "":
		return e.beginTasks(ctx, path)
	case t != nil:
		e.cron.Store(nil) // they were never scheduled, and are no more
	}
	return nil
}

// checkVersionTasks refuses a version with tasks that could not be put in force.
func (e *Environment) checkVersionTasks(b *bundle.Bundle) error {
	if b.Cron == "" || e.s.Cron != "" {
		return nil
	}
	file, err := ReadTasks(b.Cron)
	if err == nil {
		err = e.checkTaskQueues(file)
	}
	return err
}

// awaitStart waits until the start is over, its hooks included where the app is ready:
// what changes the environment comes after that. The error is [app.ErrStopped] when
// the environment ends before, or ctx's.
func (e *Environment) awaitStart(ctx context.Context) error {
	wait := func(until <-chan struct{}) error {
		select {
		case <-until:
			if e.stopping() {
				return app.ErrStopped
			}
			return nil
		case <-e.draining:
			return app.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := wait(e.started); err != nil || e.app == nil || !e.wasReady() {
		return err
	}
	return wait(e.welcomed)
}

// Hangup does what the signal HUP asks for: what changed in the settings and in the
// bundle's folder since they were read takes effect, and nothing is restarted that no
// change touches. It is an error that nothing changed.
func (e *Environment) Hangup() error {
	ctx, cancel := context.WithTimeout(context.Background(), console.MaxDeploy)
	defer cancel()
	if err := e.awaitStart(ctx); err != nil {
		return err
	}
	defer e.tellReload()()
	done, err := e.reloadChanged(ctx)
	if err == nil && done.Unchanged != "" {
		return errors.New("nothing changed in " + done.Unchanged)
	}
	return err
}

// reloadChanged does it and says what it did.
func (e *Environment) reloadChanged(ctx context.Context) (console.ReloadResult, error) {
	if err := e.awaitStart(ctx); err != nil {
		return console.ReloadResult{}, err
	}
	select { // after the deployment under way, which has read the settings, and perhaps the folder, before
	case <-e.deploying:
		defer func() { e.deploying <- struct{}{} }()
	case <-e.draining:
		return console.ReloadResult{}, app.ErrStopped
	case <-ctx.Done():
		return console.ReloadResult{}, ctx.Err()
	}
	if e.app == nil {
		return e.reloadBeside(ctx)
	}
	v := e.app.Version()
	app := v.appChanges()
	if len(app) == 0 {
		return e.reloadSettings(ctx, v.bundle)
	}
	next, err := e.openVersion(v.bundle.Dir)
	if err != nil {
		return console.ReloadResult{}, err
	}
	next.number, next.configOnly = e.nextVersion(), onlySettings(app)
	if next.configOnly && e.sameApp(v, next) {
		return e.configure(ctx, v, next)
	}
	done, err := e.deploy(ctx, v, next)
	return console.ReloadResult{Deployed: &done, Settings: next.change.Live, Later: next.change.Later}, err
}

// appChanges are the files of the version's folder that are not as they were when its
// steps had run, but for the periodic tasks.
func (v version) appChanges() []string {
	if v.bundle == nil {
		return nil
	}
	return slices.DeleteFunc(changedFiles(v.files, fingerprint(v.bundle.Dir)), func(name string) bool {
		return name == "cron.yaml"
	})
}

// reloadBeside is reloadChanged for an app that somebody else runs: of a folder only
// its settings and tasks count.
func (e *Environment) reloadBeside(ctx context.Context) (console.ReloadResult, error) {
	if e.Bundle == nil {
		return e.reloadSettings(ctx, nil)
	}
	b, err := bundle.Open(e.Bundle.Dir)
	if err != nil {
		return console.ReloadResult{}, wrongBundle(err)
	}
	return e.reloadSettings(ctx, b)
}

// reloadSettings puts in force what changed in the settings, wherever they stand, and
// reads the periodic tasks again. The app is not touched.
func (e *Environment) reloadSettings(ctx context.Context, b *bundle.Bundle) (console.ReloadResult, error) {
	change, err := e.change(b)
	if err != nil {
		return console.ReloadResult{}, err
	}
	done := console.ReloadResult{Settings: change.Live, Later: change.Later}
	if err := e.reloadAnyTasks(ctx, e.folderTasks(b)); err != nil && !errors.Is(err, errNotScheduled) {
		return console.ReloadResult{}, err
	}
	t := e.cron.Load()
	if t != nil {
		st := e.tasksStatus()
		done.File, done.Tasks, done.NotScheduled = st.File, len(st.Tasks), t.off
	}
	if t == nil && len(change.Live)+len(change.Later) == 0 {
		done.Unchanged = "the settings"
		if b != nil {
			done.Unchanged = b.Dir
		}
	}
	e.tune(change, false)
	return done, nil
}

// folderTasks is the file of tasks for a reload, which may have come into b's folder
// after that was opened; "" for none.
func (e *Environment) folderTasks(b *bundle.Bundle) string {
	t := e.cron.Load()
	if e.s.Cron != "" || t != nil && t.file() != "" || b == nil {
		return e.tasksFile()
	}
	path := filepath.Join(b.Dir, "cron.yaml")
	if fileStamp(path) == "" {
		return ""
	}
	if t != nil {
		t.setFile(path)
	}
	return path
}

// sameApp reports whether the processes of two versions of the same files would be
// the same: neither what is run nor its environment differs.
func (e *Environment) sameApp(v, next version) bool {
	return slices.Equal(v.bundle.Processes, next.bundle.Processes) &&
		slices.Equal(e.processEnvironment(v, 0), e.processEnvironment(next, 0))
}

// configure puts a version in force whose app is the one that runs: the hooks of a
// change of settings run, and the app works on.
func (e *Environment) configure(ctx context.Context, old, v version) (console.ReloadResult, error) {
	ctx, cancel := e.untilStop(ctx)
	defer cancel()
	e.beginDeployment(old, v, time.Now())
	err := e.runSteps(ctx, v, beforeStart)
	if err == nil {
		v.look()
		err = e.app.Adopt(ctx, v)
	}
	if err != nil {
		e.report.note(slog.LevelError, "deploy", "the settings stay as they were: "+err.Error())
		e.endDeployment(console.DeployRolledBack, err)
		return console.ReloadResult{}, deployError(ctx, err, false)
	}
	e.tune(v.change, false)
	e.adoptTasks(ctx, v.bundle)
	if err := e.runSteps(ctx, v, afterStart); err != nil {
		e.report.note(slog.LevelError, "deploy", "the settings are in force, but a hook after that failed: "+err.Error())
		e.endDeployment(console.DeployFailed, err)
		return console.ReloadResult{}, deployError(ctx, err, true)
	}
	e.endDeployment(console.DeployDone, nil)
	return console.ReloadResult{Settings: v.change.Live, Later: v.change.Later}, nil
}

// onlySettings reports whether files hold settings and nothing of the app.
func onlySettings(files []string) bool {
	return !slices.ContainsFunc(files, func(name string) bool {
		return name != "env.yaml" && !strings.HasPrefix(name, ".ebextensions/") &&
			!strings.HasPrefix(name, ".platform/confighooks/")
	})
}
