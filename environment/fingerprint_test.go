package environment

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tendril/bundle"
)

// TestChangesOfAVersion: what the steps of a version write is no change of it; what
// somebody changes meanwhile in a file that was read before is one.
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
	write("app", "built anew")                         // by a step
	write("bin/tool", "")                              // where nobody looks
	write(".ebextensions/a.config", "option_settings") // by somebody
	v.look()
	for _, c := range []struct {
		change func()
		want   []string
	}{
		{func() {}, []string{".ebextensions/a.config"}},
		{func() { write("Procfile", "web: ./app --fast\n") }, []string{".ebextensions/a.config", "Procfile"}},
		{func() { write("cron.yaml", "version: 1\n") }, []string{".ebextensions/a.config", "Procfile"}},
		{func() { write("app", "changed") }, []string{".ebextensions/a.config", "Procfile", "app"}},
		{func() { os.Remove(filepath.Join(dir, "app")) }, []string{".ebextensions/a.config", "Procfile", "app"}},
		{func() { v.read = readFiles(dir); v.look() }, nil},
		{func() { os.Remove(filepath.Join(dir, "Procfile")) }, []string{"Procfile"}},
	} {
		if c.change(); !slices.Equal(v.appChanges(), c.want) {
			t.Errorf("changed: %q, want %q", v.appChanges(), c.want)
		}
	}
	if changes := (version{}).appChanges(); changes != nil {
		t.Errorf("without a folder: %q", changes)
	}
}
