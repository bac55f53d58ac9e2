package environment

import (
	"context"
	"errors"
	"strings"
	"time"

	"tendril/app"
	"tendril/bundle"
	"tendril/console"
	"tendril/tasks"
)

// ErrNoApp: there is no app here whose version could be changed.
var ErrNoApp = errors.New("this environment runs no app")

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
	case <-e.changing:
		defer func() { e.changing <- struct{}{} }()
	case <-moment.C:
		return console.DeployResult{}, app.ErrBusy
	}
	return e.app.Deploy(ctx, path)
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
	if err := wait(e.started); err != nil || e.app == nil || !e.app.WasReady() {
		return err
	}
	return wait(e.app.StartHooks())
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
	defer e.notifyReload()()
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
	case <-e.changing:
		defer func() { e.changing <- struct{}{} }()
	case <-e.draining:
		return console.ReloadResult{}, app.ErrStopped
	case <-ctx.Done():
		return console.ReloadResult{}, ctx.Err()
	}
	if e.app == nil {
		return e.reloadBeside(ctx)
	}
	result, changed, err := e.app.Reload(ctx)
	if changed {
		return result, err
	}
	return e.reloadSettings(ctx, e.app.CurrentBundle())
}

// reloadBeside is reloadChanged for an app that somebody else runs: of a folder only
// its settings and tasks count.
func (e *Environment) reloadBeside(ctx context.Context) (console.ReloadResult, error) {
	if e.Bundle == nil {
		return e.reloadSettings(ctx, nil)
	}
	b, err := bundle.Open(e.Bundle.Dir)
	if err != nil {
		return console.ReloadResult{}, app.Refused(err)
	}
	return e.reloadSettings(ctx, b)
}

// reloadSettings puts in force what changed in the settings, wherever they stand, and
// reads the periodic tasks again. The app is not touched.
func (e *Environment) reloadSettings(ctx context.Context, b *bundle.Bundle) (console.ReloadResult, error) {
	change, err := e.change(b)
	if err != nil {
		return console.ReloadResult{}, app.Refused(err)
	}
	done := console.ReloadResult{Settings: change.Live, Later: change.Later}
	dir := ""
	if b != nil {
		dir = b.Dir
	}
	if err := e.tasks.Refresh(ctx, dir); err != nil && !errors.Is(err, tasks.ErrNotScheduled) {
		return console.ReloadResult{}, err
	}
	st := e.tasks.Status()
	done.File, done.Tasks, done.NotScheduled = st.File, len(st.Tasks), e.tasks.Off()
	if !e.tasks.Any() && len(change.Live)+len(change.Later) == 0 {
		done.Unchanged = "the settings"
		if b != nil {
			done.Unchanged = b.Dir
		}
	}
	e.tune(change, false)
	return done, nil
}

// refusal is why a request over the console was not begun; "" if it was begun, since its
// failure is logged anyway.
func refusal(err error) string {
	var begun *console.DeployError
	if err == nil || errors.As(err, &begun) {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n  ", "; ") // a problem's advice is on a line of its own
}
