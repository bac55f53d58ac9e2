package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/instances"
	"tendril/internal/observe/event"
)

// NewSettings is returned by [Environment.Run] if settings for all instances take effect only after another start.
type NewSettings struct {
	Config   *config.Config
	Registry *config.File
}

func (n *NewSettings) Error() string {
	return "restarting with the settings for all instances: " + n.Registry.Path
}

func registryFile(s *instances.Settings) *config.File {
	if s.Revision == 0 {
		return nil
	}
	return &config.File{Path: fmt.Sprintf("registry, revision %d", s.Revision), Data: []byte(s.Text), Shared: true}
}

func (d *desired) settingsFile() settingsFile {
	f := settingsFile{file: config.File{Path: "registry", Shared: true}}
	if d.state != nil {
		now, _ := d.state.Current()
		if latest := registryFile(&now.Settings); latest != nil {
			f.file = *latest
		}
	}
	return f
}

func (d *desired) sharedSettings() *api.SharedSettings {
	if d.state == nil {
		return nil
	}
	now, _ := d.state.Current()
	s := &now.Settings
	return &api.SharedSettings{Revision: s.Revision, By: s.By, At: s.At, RolledBack: s.RolledBack,
		InBatches: s.Rollout != nil}
}

func (d *desired) warnings(change api.SettingsChange, after *config.Config) (all []api.Detail) {
	switch {
	case change.This:
	case d.state == nil && d.members.shared():
		all = append(all, api.Detail{Text: "this changes one instance only, because it has no fleet key",
			Hint: "with --fleet-key-file on every instance, a change applies to all"})
	case d.state != nil:
		for _, name := range slices.Sorted(maps.Keys(change.Set)) {
			if source := after.Origin(name).Overrides(config.FromRegistry); source != "" {
				all = append(all, api.Detail{Option: name, Text: name + " is overridden here by " + source})
			}
		}
	}
	return all
}

func (d *desired) setSettings(ctx context.Context, plan *settingsPlan, change api.SettingsChange,
) (revision int64, err error) {
	if plan.Base == plan.Hash {
		now, _ := d.state.Current()
		return now.Settings.Revision, nil
	}
	others, err := d.members.others(ctx)
	if err != nil {
		return 0, unchanged(err)
	}
	all := append(others, instances.Instance{Record: d.members.ownRecord()})
	names := slices.Collect(maps.Keys(change.Set))
	restartsApp := slices.ContainsFunc(names, func(name string) bool {
		o, _ := config.Lookup(name)
		return o.AppRestart
	})
	part := instances.PartSettings
	if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, " of ") }) {
		part = instances.PartQueueSettings
	}
	follows := func(one *instances.Instance) bool { return slices.Contains(one.Applies, part) }
	return d.changeAll(ctx, follows, func(now *instances.Desired) error {
		if hashOf([]byte(now.Settings.Text)) != change.Base {
			return errChangedMeanwhile(plan.File)
		}
		text := string(plan.new.Data)
		by := api.CallerName(ctx)
		settled := now.Settings.AppliedBy(all)
		how := rolloutPolicy(d.settings.now())
		needsBatches := restartsApp || now.Settings.Rollout != nil
		if needsBatches && how.InBatches() && supportBatches(all) {
			now.RollOutSettings(text, by, settled, how)
		} else {
			now.SetSettings(text, by, settled)
		}
		return nil
	})
}

// supportBatches reports whether all reachable instances wait for their batch. Older versions apply settings at once,
// and do not continue a rollout when they lead.
func supportBatches(all []instances.Instance) bool {
	return !slices.ContainsFunc(all, func(one instances.Instance) bool {
		return one.Counts() && !slices.Contains(one.Applies, instances.PartBatches)
	})
}

// adoptSettings runs before anything is received. The error is a [*NewSettings] if an option needs another start.
func (d *desired) adoptSettings() error {
	now, _ := d.state.Current()
	settings := now.Settings.For("")
	file := registryFile(&settings)
	d.follower.Started(settings.Revision)
	known := d.opts.Registry
	isKnown := file == nil || known != nil && string(known.Data) == string(file.Data)
	if isKnown || d.opts.Load == nil {
		d.changes.registry.Store(file)
		return nil
	}

	src := d.changes.sources(d.opts.Bundle)
	src.Registry = file
	cfg, err := d.changes.load(src)
	if err != nil {
		return fmt.Errorf("%w: settings for all instances: %w", ErrSettings, err)
	}
	change := d.changes.changeTo(cfg)
	change.RestartApp() // the app starts later
	if len(change.Later) > 0 {
		return &NewSettings{cfg, file}
	}
	d.changes.registry.Store(file)
	d.work.applySettings(change, false)
	return nil
}

func (d *desired) applySettings(ctx context.Context, s *instances.Settings) error {
	switch err := d.changes.applyRegistry(ctx, registryFile(s)); {
	case ctx.Err() != nil, errors.Is(err, instances.ErrNotApplied):
		return instances.ErrNotApplied
	case err != nil:
		event.Deploy.Log(d.log(), slog.LevelError, "settings for all instances rejected, the previous ones still apply",
			"err", err, "revision", s.Revision)
		return errors.New(oneLine(err))
	case s.RolledBack != "":
		event.Deploy.Log(d.log(), slog.LevelWarn, "settings for all instances rolled back", "revision", s.Revision,
			"reason", s.RolledBack)
	default:
		event.Deploy.Log(d.log(), slog.LevelInfo, "settings for all instances applied", "revision", s.Revision,
			"by", s.By)
	}
	return nil
}

func oneLine(err error) string {
	wrong, ok := errors.AsType[*config.Error](err)
	if !ok {
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
	var texts []string
	for _, p := range wrong.Problems {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, "; ")
}

// applyRegistry restores the previous settings if the app does not restart, unless ctx is done.
func (c *changes) applyRegistry(ctx context.Context, next *config.File) error {
	end, err := c.awaitTurn(ctx)
	if err != nil {
		return instances.ErrNotApplied
	}
	defer end()

	previous := c.registry.Load()
	restart, err := c.useRegistry(next)
	if err != nil || !restart {
		return err
	}
	restarted, err := c.programs.app.RestartAll(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, undone := c.useRegistry(previous); undone != nil {
		return errors.Join(err, undone)
	}
	if restarted > 0 {
		_, again := c.programs.app.RestartAll(ctx)
		err = errors.Join(err, again)
	}
	return err
}

func (c *changes) useRegistry(file *config.File) (restart bool, err error) {
	b := c.currentBundle()
	cfg, err := c.load(config.Sources{Bundle: b, Registry: file})
	if err != nil || cfg == nil {
		return false, err
	}
	change := c.changeTo(cfg)
	if c.programs.app != nil {
		restart = len(change.RestartApp()) > 0
	}
	c.registry.Store(file)
	c.apply(change, b)
	return restart, nil
}
