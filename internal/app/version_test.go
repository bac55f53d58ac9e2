package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tendril/internal/bundle"
)

func TestChangesOfAVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("Procfile", "web: ./app\n")
	write("app", "old")
	v := version{bundle: &bundle.Bundle{Dir: dir}, read: readFiles(dir)}
	write("app", "built anew")
	write("bin/tool", "")
	write(".ebextensions/a.config", "option_settings")
	v.recordFiles()
	for _, c := range []struct {
		change func()
		want   []string
	}{
		{func() {}, []string{".ebextensions/a.config"}},
		{func() { write("Procfile", "web: ./app --fast\n") }, []string{".ebextensions/a.config", "Procfile"}},
		{func() { write("tendril.yaml", "quiet: true\n") }, []string{".ebextensions/a.config", "Procfile"}},
		{func() { write("cron.yaml", "version: 1\n") }, []string{".ebextensions/a.config", "Procfile"}},
		{func() { write("app", "changed") }, []string{".ebextensions/a.config", "Procfile", "app"}},
		{func() { os.Remove(filepath.Join(dir, "app")) }, []string{".ebextensions/a.config", "Procfile", "app"}},
		{func() { v.read = readFiles(dir); v.recordFiles() }, nil},
		{func() { os.Remove(filepath.Join(dir, "Procfile")) }, []string{"Procfile"}},
	} {
		if c.change(); !slices.Equal(v.changedFiles(), c.want) {
			t.Errorf("changed: %q, want %q", v.changedFiles(), c.want)
		}
	}
	if changes := (version{}).changedFiles(); changes != nil {
		t.Errorf("without a folder: %q", changes)
	}
}

func TestVersionNumbersAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, versionFile)
	start := func(path string) *versionNumbers {
		return &versionNumbers{path: path, log: slog.New(slog.DiscardHandler)}
	}
	mustBe := func(when string, numbers *versionNumbers, want int) {
		t.Helper()
		if got := numbers.next(); got != want {
			t.Errorf("%s: version %d, want %d", when, got, want)
		}
	}
	first := start(path)
	mustBe("the first", first, 1)
	mustBe("a deployment", first, 2)
	mustBe("a restart", start(path), 3)
	mustBe("no file is written", start(""), 1)
	again := start(path)
	mustBe("the next restart", again, 4)
	if err := os.WriteFile(path, []byte("many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustBe("a damaged file", again, 5)
	mustBe("a file that was put right", start(path), 6)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("70\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	mustBe("a link", again, 6)
	if text, err := os.ReadFile(target); string(text) != "70\n" {
		t.Errorf("the link's target holds %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left is %q, %v", left, err)
	}
}

func TestDeploymentsToAllInstancesAreLoggedWithTheirSharedNumbers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &App{opts: &Options{Log: slog.New(slog.NewTextHandler(&out, nil))}}
	a.logDeploymentStarted(version{number: 7}, version{number: 8, shared: SharedVersion{Number: 2}})
	if !strings.Contains(out.String(), "version=2 previous=7") {
		t.Errorf("logged %q", out.String())
	}
}
