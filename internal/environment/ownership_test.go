package environment

import (
	"bytes"
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/internal/bundle"
	"tendril/internal/config"
)

func TestRootAndFoldersOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path            string // path within the bundle; "" for the bundle's folder
		mode            os.FileMode
		refused, warned string
	}{
		"nobody else":    {"Procfile", 0o644, "", ""},
		"the app's code": {"app.py", 0o666, "", ""},
		"the folder, everybody": {"", 0o777,
			"DIR: every user can write to it (mode 0777), and its commands would run as root: type 'chmod go-w DIR'",
			"every user"},
		"the parent folder, everybody": {"..", 0o777,
			": every user can write to it (mode 0777), and its commands would run as root", "every user"},
		"a sticky parent folder": {"..", 0o777 | os.ModeSticky, "", ""},
		"the Procfile, everybody": {"Procfile", 0o666,
			"DIR/Procfile: every user can write to it (mode 0666), and its commands would run as root: type 'chmod go-w " +
				"DIR/Procfile'", "every user"},
		"a hook, everybody": {".platform/hooks/prebuild/a", 0o777,
			"DIR/.platform/hooks/prebuild/a: every user can write to it", "every user"},
		"the settings, everybody": {".ebextensions/a.config", 0o666,
			"DIR/.ebextensions/a.config: every user can write to it", "every user"},
		"the tasks, a group of us": {"cron.yaml", 0o664, "", "group "},
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
			if strings.HasPrefix(c.warned, "group") {
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
			named := &config.Settings{AppUser: "nobody"}
			warnOfRoot(log, named, b, true)
			if said := out.String(); (said != "") != (c.warned != "") || !strings.Contains(said, c.warned) {
				t.Errorf("said %q, want %q", said, c.warned)
			}
			err = refuseRoot(named, b, "the app", true)
			want := strings.ReplaceAll(c.refused, "DIR", dir)
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("refused: %v, want %q", err, want)
			}
			out.Reset()
			warnOfRoot(log, named, b, false)
			if err := refuseRoot(named, b, "the app", false); err != nil || out.Len() > 0 {
				t.Errorf("not as root: %v, %s", err, &out)
			}
		})
	}
}

func TestRootRunsTheAppIfNobodyElseCanChangeIt(t *testing.T) {
	for name, c := range map[string]struct {
		path    string // changed path below the folder "app", or ".." for its parent
		mode    os.FileMode
		owner   int
		refused string
	}{
		"nobody else":          {path: "Procfile", mode: 0o644},
		"a sticky parent":      {path: "..", mode: 0o777 | os.ModeSticky},
		"the app's code":       {path: "app.py", mode: 0o666, refused: "DIR/app.py: every user can write to it (mode 0666): type 'chmod"},
		"code of another user": {path: "lib/code.py", owner: 4_000_001, refused: "DIR/lib/code.py: it belongs to user 4000001: type 'chown"},
		"a folder of a user":   {path: "", owner: 4_000_001, refused: "DIR: it belongs to user 4000001: type 'chown"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "app")
			for _, file := range []string{"Procfile", "app.py", "lib/code.py"} {
				path := filepath.Join(dir, file)
				err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644))
				if err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, c.path)
			if c.owner != 0 && os.Geteuid() != 0 {
				t.Skip("NOT TESTED with another user's file: it takes root")
			}
			if c.owner != 0 {
				if err := os.Chown(path, c.owner, c.owner); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			b, err := bundle.Open(dir)
			if err != nil {
				t.Fatal(err)
			}

			for what, b := range map[string]*bundle.Bundle{"the app": b, "the function": nil} {
				if b == nil {
					t.Chdir(dir) // without a bundle, the code is in the working folder
				}
				err := refuseRoot(&config.Settings{}, b, what, true)
				want := strings.ReplaceAll(c.refused, "DIR", dir)
				if (err != nil) != (want != "") || err != nil &&
					!strings.Contains(err.Error(), "so would "+what+", which others can change: "+want) {
					t.Errorf("%s: refused: %v, want %q", what, err, want)
				}
				for _, s := range []*config.Settings{{AppUser: "nobody"}, {AllowRoot: true}} {
					if err := refuseRoot(s, b, what, true); err != nil && c.path != "" {
						t.Errorf("%s: refused although the settings say as whom it runs: %v", what, err)
					}
				}
			}

			var out bytes.Buffer
			warnOfRoot(slog.New(slog.NewTextHandler(&out, nil)), &config.Settings{}, b, true)
			if !strings.Contains(out.String(), "app runs as root") || !strings.Contains(out.String(), "--app-user") {
				t.Errorf("the warning is %s", &out)
			}
		})
	}
}
