package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/internal/host/trust"
)

func legacyFolder(t *testing.T, files ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestLegacyHooksRunByStageAndName(t *testing.T) {
	t.Parallel()
	folder := legacyFolder(t, "appdeploy/pre/20_b.sh", "appdeploy/pre/10_a.sh", "appdeploy/enact/30_c.sh",
		"appdeploy/post/05_d.sh", "appdeploy/post/05_d.sh.bak", "appdeploy/post/06_plain", "appdeploy/pre/sub/x.sh",
		"configdeploy/post/40_e.sh")
	if err := os.Chmod(filepath.Join(folder, "appdeploy/post/06_plain"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "appdeploy/post/07_link.sh")
	if err := os.Symlink(filepath.Join(folder, "configdeploy/post/40_e.sh"), link); err != nil {
		t.Fatal(err)
	}
	for event, want := range map[LegacyEvent]string{
		AppDeploy: "appdeploy pre 10_a.sh, appdeploy pre 20_b.sh; " +
			"appdeploy enact 30_c.sh, appdeploy post 05_d.sh, appdeploy post 07_link.sh",
		ConfigDeploy: "; configdeploy post 40_e.sh", RestartAppServer: "; ",
	} {
		before, after, err := LegacyHooks(folder, event, "/app")
		if err != nil {
			t.Fatal(err)
		}
		text := func(steps []Step) string {
			var list []string
			for _, s := range steps {
				if s.Dir != "/app" || len(s.Argv) != 1 || s.Argv[0] != s.File {
					t.Errorf("%+v", s)
				}
				list = append(list, string(s.Phase)+" "+filepath.Base(s.File))
			}
			return strings.Join(list, ", ")
		}
		if got := text(before) + "; " + text(after); got != want {
			t.Errorf("%s: got %q, want %q", event, got, want)
		}
	}
}

func TestLegacyHooksThatOthersMayWriteAreRefused(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"appdeploy/pre", "appdeploy/pre/10_a.sh"} {
		folder := legacyFolder(t, "appdeploy/pre/10_a.sh")
		if err := os.Chmod(filepath.Join(folder, open), 0o777); err != nil {
			t.Fatal(err)
		}
		var wrong *trust.Error
		if _, _, err := LegacyHooks(folder, AppDeploy, "/app"); !errors.As(err, &wrong) {
			t.Errorf("%s is writable by everybody: %v", open, err)
		}
	}
}
