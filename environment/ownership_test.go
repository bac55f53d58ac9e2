package environment

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/bundle"
)

// TestRootAndFoldersOfOthers: root runs nothing that every user may write, and says who
// else decides.
func TestRootAndFoldersOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path            string // in the bundle, "" for its folder
		mode            os.FileMode
		refused, warned string
	}{
		"nobody else":    {"Procfile", 0o644, "", ""},
		"the app's code": {"app.py", 0o666, "", ""},
		"the folder, everybody": {"", 0o777,
			"DIR: every user may write to it (mode 0777), and its commands would run as root: type 'chmod go-w DIR'",
			"every user"},
		"the Procfile, everybody": {"Procfile", 0o666,
			"DIR/Procfile: every user may write to it (mode 0666), and its commands would run as root: type 'chmod go-w " +
				"DIR/Procfile'", "every user"},
		"a hook, everybody": {".platform/hooks/prebuild/a", 0o777,
			"DIR/.platform/hooks/prebuild/a: every user may write to it", "every user"},
		"the settings, everybody": {".ebextensions/a.config", 0o666,
			"DIR/.ebextensions/a.config: every user may write to it", "every user"},
		"the tasks, a group of us": {"cron.yaml", 0o664, "", "the group"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, file := range []string{"Procfile", "app.py", "cron.yaml", ".ebextensions/a.config",
				".platform/hooks/prebuild/a"} {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(c.warned, "the group") {
				if os.Geteuid() != 0 {
					t.Skip("only root can give a file to any group")
				}
				if err := os.Chown(filepath.Join(dir, c.path), -1, 4_000_001); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(filepath.Join(dir, c.path), c.mode); err != nil {
				t.Fatal(err)
			}
			b, err := bundle.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, nil))
			warnOfForeignBundle(log, b, true)
			if said := out.String(); (said != "") != (c.warned != "") || !strings.Contains(said, c.warned) {
				t.Errorf("said %q, want %q", said, c.warned)
			}
			err = refuseForeignBundle(b, true)
			want := strings.ReplaceAll(c.refused, "DIR", dir)
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("refused: %v, want %q", err, want)
			}
			out.Reset()
			warnOfForeignBundle(log, b, false)
			if err := refuseForeignBundle(b, false); err != nil || out.Len() > 0 {
				t.Errorf("not as root: %v, %s", err, &out)
			}
		})
	}
}
