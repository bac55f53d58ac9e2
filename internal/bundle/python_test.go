package bundle

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRequirementsThatAreInstalledAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		requirements string
		want         bool
	}{
		"all, spelled in other ways": {"# web\nFlask>=3\nflask-cors[x]==6.0 ; python_version > '3'\n\n-r more.txt\n", true},
		"one is missing":             {"flask\nboto3\n", false},
		"part of a name":             {"flas\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, folder := range []string{"py/bin", "py/lib/python3.13/site-packages/Flask_Cors-6.0.dist-info",
				"pyenv/versions/3/lib/python3.12/site-packages/flask-3.1.dist-info", "pyenv/shims"} {
				if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, RequirementsFile), []byte(c.requirements), 0o600); err != nil {
				t.Fatal(err)
			}
			b := &Bundle{Dir: dir}
			if got := b.RequirementsInstalled(dir + "/py/bin:" + dir + "/pyenv/shims"); got != c.want {
				t.Errorf("installed: %t, want %t", got, c.want)
			}
			if b.RequirementsInstalled("") {
				t.Error("installed without any Python")
			}
		})
	}
}
