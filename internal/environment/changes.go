package environment

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tendril/api"
	"tendril/internal/app"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/cron/tasks"
	"tendril/internal/observe/event"
)

type changes struct {
	opts     *Options
	life     *lifecycle
	settings *settings
	work     *pipelines
	programs *programs
	cron     *schedule
	desired  *desired
	changing chan struct{}
	rollouts *rollouts
	registry atomic.Pointer[config.File]
}

func (c *changes) sources(b *bundle.Bundle) config.Sources {
	return config.Sources{Bundle: b, Registry: c.registry.Load()}
}

func (c *changes) DeployPath(ctx context.Context, path string) (api.DeployResult, error) {
	if c.rollouts.deploysToAll() {
		return c.logRejected(c.rollouts.deploy(ctx, path))
	}
	return c.deploy(ctx, func() (api.DeployResult, error) { return c.programs.app.Deploy(ctx, path) })
}

func (c *changes) rollBack(ctx context.Context, number int) (api.DeployResult, error) {
	if c.rollouts.deploysToAll() {
		return c.logRejected(c.rollouts.rollBack(ctx, number))
	}
	return c.deploy(ctx, func() (api.DeployResult, error) { return c.programs.app.RollBack(ctx, number) })
}

func (c *changes) abort(ctx context.Context) (api.Deployment, error) {
	if c.rollouts.deploysToAll() {
		return c.rollouts.abort(ctx)
	}
	return c.programs.app.Abort(ctx)
}

func (c *changes) versions(ctx context.Context, latest bool) ([]api.AppVersion, error) {
	if !c.rollouts.deploysToAll() {
		return c.programs.app.Versions(), nil
	}
	if latest {
		leases, err := c.rollouts.leases(ctx)
		if err == nil {
			_, err = c.desired.state.Refresh(ctx, leases)
		}
		if err != nil {
			return nil, registryError("versions not read: ", err, registryHint)
		}
	}
	return c.rollouts.versions(), nil
}

func (c *changes) restart(ctx context.Context, process string) (started string, err error) {
	if err := c.awaitStart(ctx); err != nil {
		return "", err
	}
	return c.programs.app.Restart(ctx, process)
}

func (c *changes) logRejected(done api.DeployResult, err error) (api.DeployResult, error) {
	if why := refusal(err); why != "" {
		event.Deploy.Log(c.opts.log("app"), slog.LevelWarn, "deployment rejected", "err", why)
	}
	return done, err
}

func (c *changes) deploy(ctx context.Context, begin func() (api.DeployResult, error)) (api.DeployResult, error) {
	return c.logRejected(c.deployInTurn(ctx, begin))
}

// deployWait lets a reload finish, but not another deployment.
const deployWait = 250 * time.Millisecond

func (c *changes) deployInTurn(ctx context.Context, begin func() (api.DeployResult, error),
) (none api.DeployResult, err error) {
	if err := c.awaitStart(ctx); err != nil {
		return none, err
	}
	waiting, cancel := context.WithTimeout(ctx, deployWait)
	defer cancel()
	end, err := c.takeTurn(waiting)
	if err != nil {
		return none, err
	}
	defer end()
	return begin()
}

func (c *changes) awaitTurn(ctx context.Context) (end func(), err error) {
	if err := c.awaitStart(ctx); err != nil {
		return nil, err
	}
	return c.takeTurn(ctx)
}

// takeTurn waits until no other change is in progress. The caller must call end.
func (c *changes) takeTurn(ctx context.Context) (end func(), err error) {
	select {
	case <-c.changing:
		return func() { c.changing <- struct{}{} }, nil
	case <-c.life.draining:
		return nil, app.ErrStopped
	case <-ctx.Done():
		return nil, app.ErrBusy
	}
}

func (c *changes) awaitStart(ctx context.Context) error {
	if !c.life.running() && !c.life.stopping() {
		c.opts.log("environment").Info("change waits for the end of startup")
	}
	if err := c.await(ctx, c.life.started); err != nil {
		return err
	}
	if c.programs.app == nil || !c.programs.app.WasReady() {
		return nil
	}
	return c.await(ctx, c.programs.app.StartHooks())
}

func (c *changes) await(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
		if c.life.stopping() {
			return app.ErrStopped
		}
		return nil
	case <-c.life.draining:
		return app.ErrStopped
	case <-ctx.Done():
		return errStarting
	}
}

func (c *changes) reload(ctx context.Context) (api.ReloadResult, error) {
	done, err := c.reloadChanged(ctx)
	if why := refusal(err); why != "" {
		event.Deploy.Log(c.opts.log("app"), slog.LevelWarn, "reload rejected", "err", why)
	}
	return done, err
}

func (c *changes) reloadChanged(ctx context.Context) (done api.ReloadResult, err error) {
	end, err := c.awaitTurn(ctx) // a change in progress may have read the files before they changed
	if err != nil {
		return done, err
	}
	defer end()

	b := c.opts.Bundle
	if c.programs.app != nil {
		result, err := c.programs.app.Reload(ctx)
		if err != nil {
			return done, err
		}
		if result != nil {
			return *result, nil
		}
		b = c.programs.app.CurrentBundle()
	} else if b != nil {
		if b, err = bundle.Open(b.Dir); err != nil {
			return done, app.Refused(err)
		}
	}

	return c.reloadSettings(ctx, b)
}

func (c *changes) reloadSettings(ctx context.Context, b *bundle.Bundle) (done api.ReloadResult, err error) {
	change, err := c.loadChange(b)
	if err != nil {
		return done, app.Refused(err)
	}

	dir := c.sourceFolder(b)
	if err := c.cron.tasks.Refresh(ctx, dir); err != nil && !errors.Is(err, tasks.ErrNotScheduled) {
		return done, err
	}

	st := c.cron.tasks.Status()
	done = api.ReloadResult{Settings: change.Live, Later: change.Later, File: st.File, Tasks: len(st.Tasks),
		NotScheduled: c.cron.tasks.Off()}
	if !c.cron.tasks.Any() && len(change.Live)+len(change.Later) == 0 {
		done.Unchanged = cmp.Or(dir, "the settings")
	}

	c.apply(change, b) // last: rejected tasks leave the settings as they are
	return done, nil
}

func (c *changes) sourceFolder(b *bundle.Bundle) string {
	switch {
	case c.programs.app != nil:
		return c.programs.app.SourceFolder()
	case b != nil:
		return b.Dir
	}
	return ""
}

func (c *changes) apply(change config.Change, b *bundle.Bundle) {
	c.work.applySettings(change, false)
	if c.programs.app != nil {
		c.programs.app.RefreshFacts()
	} else if err := c.programs.facts.Publish(startFacts, b, nil); err != nil {
		c.opts.log("environment").Warn("get-config still uses the previous settings", "err", err)
	}
}

func (c *changes) loadChange(b *bundle.Bundle) (config.Change, error) {
	cfg, err := c.load(c.sources(b))
	if err != nil {
		return config.Change{}, err
	}
	if cfg != nil {
		c.logNewlyUnused(cfg, b)
	}
	return c.changeTo(cfg), nil
}

func (c *changes) load(src config.Sources) (*config.Config, error) {
	if c.opts.Load == nil {
		return nil, nil
	}
	if b := src.Bundle; b != nil && c.opts.Bundle != nil {
		same := *b // with the name at startup, whichever folder the version is in
		same.Called = cmp.Or(c.opts.Bundle.Called, filepath.Base(c.opts.Bundle.Dir))
		src.Bundle = &same
	}
	return c.opts.Load(src)
}

func (c *changes) changeTo(cfg *config.Config) config.Change {
	if cfg == nil {
		return config.Change{}
	}
	change := config.Changed(c.settings.now(), cfg)
	c.keepConnections(&change)
	return change
}

func (c *changes) currentBundle() *bundle.Bundle {
	if c.programs.app != nil {
		return c.programs.app.CurrentBundle()
	}
	return c.opts.Bundle
}

func (c *changes) pendingChange() (change config.Change, err error) {
	b := c.currentBundle()
	if b != nil {
		if b, err = bundle.Open(b.Dir); err != nil {
			return change, err
		}
	}
	cfg, err := c.load(c.sources(b))
	if err != nil {
		return change, err
	}
	return c.changeTo(cfg), nil
}

func (c *changes) logNewlyUnused(cfg *config.Config, b *bundle.Bundle) {
	now := *c.opts
	now.Config, now.Bundle = cfg, b
	known := NotUsed(c.opts)
	for _, f := range NotUsed(&now) {
		if !slices.Contains(known, f) {
			c.opts.log("bundle").Warn("bundle warning", "problem", f.String(), "file", f.File, "line", f.Line)
		}
	}
}

const connections = "http-connections"

// keepConnections postpones a change of http-connections to the next start if it would resize a shared pool, a
// function's processes or a limiter.
func (c *changes) keepConnections(change *config.Change) {
	i := slices.Index(change.Live, connections)
	if i < 0 || !c.sharesConnections() {
		return
	}
	change.Live = slices.Delete(change.Live, i, i+1)
	change.Later = append(change.Later, connections)

	inForce := c.settings.now()
	change.Settings.HTTPConnections = inForce.HTTPConnections
	for i := range change.Settings.Queues { // in the same order
		change.Settings.Queues[i].Concurrency = inForce.Queues[i].Concurrency
	}
}

func (c *changes) sharesConnections() bool {
	s := c.settings.now()
	return c.work.pool != nil || slices.ContainsFunc(s.Queues, runsHere) || s.AdaptiveConcurrency || s.Breaker != 0
}

func (c *changes) checkVersion(b *bundle.Bundle) error {
	s := c.settings.now()
	if err := refuseRoot(s, b, "the app", isMachineRoot()); err != nil {
		return err
	}
	warnOfRoot(c.opts.Logger.Logger, s, b, isMachineRoot())
	if s.MachineSections == config.MachineApply && len(c.opts.Command) == 0 {
		if err := refuseMachine(b); err != nil {
			return err
		}
	}
	if b.Cron == "" || s.Cron != "" {
		return nil
	}
	_, err := tasks.Read(b.Cron)
	return err
}

// refusal returns "" for a deployment that failed after its start, which logs that itself.
func refusal(err error) string {
	if _, failed := errors.AsType[*api.DeployError](err); failed || err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n  ", "; ") // hints are on their own lines
}
