package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tendril/internal/bundle"
	"tendril/internal/config"
)

// legacyPlatform emulates Elastic Beanstalk platforms before Amazon Linux 2: it runs the hooks that a bundle installs
// in the folder hooks, and links the version in the folder apps.
type legacyPlatform struct {
	settings *config.Settings
	hooks    string
	apps     string
}

func newLegacyPlatform(s *config.Settings) *legacyPlatform {
	return &legacyPlatform{settings: s, hooks: "/opt/elasticbeanstalk/hooks", apps: "/var/app"}
}

func (l *legacyPlatform) isOn(v version) bool {
	if l.settings.MachineSections != config.MachineApply || !v.isFromBundle() {
		return false
	}
	_, err := os.Stat(l.hooks)
	return err == nil || v.bundle.Machine.Content != ""
}

func (l *legacyPlatform) steps(v version, after bool) ([]bundle.Step, error) {
	if !l.isOn(v) {
		return nil, nil
	}
	event := bundle.AppDeploy
	switch {
	case v.configOnly:
		event = bundle.ConfigDeploy
	case v.restart:
		event = bundle.RestartAppServer
	}
	pre, post, err := bundle.LegacyHooks(l.hooks, event, v.bundle.Dir)
	if after {
		return post, err
	}
	return pre, err
}

func (l *legacyPlatform) link(name string, v version) error {
	if !l.isOn(v) {
		return nil
	}

	path := filepath.Join(l.apps, name)
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("%s is not a link to a version: move it elsewhere", path)
	}
	if err := os.MkdirAll(l.apps, 0o755); err != nil {
		return err
	}

	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(v.bundle.Dir, fresh); err != nil {
		return err
	}

	return os.Rename(fresh, path)
}

func linkGetConfig(b *bundle.Bundle) error {
	if os.Geteuid() != 0 || !b.NamesGetConfig() {
		return nil
	}
	if _, err := os.Stat(bundle.GetConfig); !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Remove(bundle.GetConfig); err != nil && !errors.Is(err, fs.ErrNotExist) { // a dangling link
		return err
	}
	if err := os.MkdirAll(filepath.Dir(bundle.GetConfig), 0o755); err != nil {
		return err
	}

	return os.Symlink(program, bundle.GetConfig)
}

func (a *App) linkCurrent(v version) {
	if err := a.steps.legacy.link("current", v); err != nil {
		a.opts.Log.Error("link to the current version not changed", "version", v.displayed(), "err", err)
	}
}
