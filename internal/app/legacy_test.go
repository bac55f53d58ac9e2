package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tendril/internal/bundle"
	"tendril/internal/config"
)

func TestLegacyHooksRunAroundTheStart(t *testing.T) {
	t.Parallel()
	dir, hooks := t.TempDir(), t.TempDir()
	for _, event := range []string{"appdeploy", "configdeploy", "restartappserver"} {
		for _, stage := range []string{"pre", "enact", "post"} {
			folder := filepath.Join(hooks, event, stage)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "10.sh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "Procfile"), []byte("web: exit 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		sections string
		v        version
		want     []string
	}{
		{config.MachineApply, version{}, []string{"appdeploy/pre", "", "appdeploy/enact", "appdeploy/post"}},
		{config.MachineApply, version{configOnly: true},
			[]string{"configdeploy/pre", "", "configdeploy/enact", "configdeploy/post"}},
		{config.MachineApply, version{restart: true},
			[]string{"restartappserver/pre", "", "restartappserver/enact", "restartappserver/post"}},
		{"ignore", version{}, []string{""}},
	} {
		var begun []string
		settings := &config.Settings{AppGrace: time.Second, MachineSections: tt.sections}
		s := &stepRunner{begins: func(step string) { begun = append(begun, step) }, opts: &Options{
			Settings: func() *config.Settings { return settings }, Log: slog.New(slog.DiscardHandler), Hurry: t.Context(),
			Environ: func(*bundle.Bundle, int) []string { return os.Environ() },
			Output:  func(string, string, []byte) {}, Draining: make(chan struct{}), Facts: noFacts{},
		}, legacy: &legacyPlatform{settings: settings, hooks: hooks, apps: filepath.Join(t.TempDir(), "app")}}
		defer s.stop()
		tt.v.bundle = b
		if err := s.run(t.Context(), tt.v, beforeStart); err != nil {
			t.Fatal(err)
		}
		begun = append(begun, "")
		if err := s.legacy.link("current", tt.v); err != nil {
			t.Fatal(err)
		}
		if err := s.run(t.Context(), tt.v, afterStart); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, at := range tt.want {
			if at != "" {
				at = filepath.Join(hooks, at, "10.sh")
			}
			want = append(want, at)
		}
		if !slices.Equal(begun, want) {
			t.Errorf("%s, %+v: got %q, want %q", tt.sections, tt.v, begun, want)
		}
		for _, name := range []string{"staging", "current"} {
			target, err := os.Readlink(filepath.Join(s.legacy.apps, name))
			if applied := tt.sections == config.MachineApply; applied != (err == nil && target == dir) {
				t.Errorf("%s: %s leads to %q, %v", tt.sections, name, target, err)
			}
		}
	}
}

func TestAFolderInThePlaceOfALinkIsLeftAlone(t *testing.T) {
	t.Parallel()
	apps := t.TempDir()
	if err := os.Mkdir(filepath.Join(apps, "current"), 0o755); err != nil {
		t.Fatal(err)
	}
	settings := &config.Settings{MachineSections: config.MachineApply}
	l := &legacyPlatform{settings: settings, hooks: t.TempDir(), apps: apps}
	if err := l.link("current", version{bundle: &bundle.Bundle{Dir: "/app"}}); err == nil {
		t.Error("a folder that somebody else made was replaced")
	}
}

func TestMachineIsUntouchedWithoutMachineSections(t *testing.T) {
	t.Parallel()
	settings := &config.Settings{MachineSections: config.MachineApply}
	for name, tt := range map[string]struct {
		machine bundle.Machine
		hooks   bool
		want    bool
	}{
		"neither":                       {},
		"sections":                      {machine: bundle.Machine{Content: "some"}, want: true},
		"hooks from an earlier version": {hooks: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := &legacyPlatform{settings: settings, hooks: filepath.Join(dir, "hooks"), apps: filepath.Join(dir, "app")}
			if tt.hooks {
				if err := os.Mkdir(l.hooks, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			v := version{bundle: &bundle.Bundle{Dir: "/app", Machine: tt.machine}}

			_, err := l.steps(v, false)
			if err := errors.Join(err, l.link("staging", v), l.link("current", v)); err != nil {
				t.Fatal(err)
			}

			for _, link := range []string{"staging", "current"} {
				if _, err := os.Lstat(filepath.Join(l.apps, link)); (err == nil) != tt.want {
					t.Errorf("%s: %v, want a link: %t", link, err, tt.want)
				}
			}
		})
	}
}
