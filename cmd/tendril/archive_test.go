package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tendril/internal/bundle"
	"tendril/internal/cli/base"
)

func writeFiles(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func writeArchive(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := zipFolder(path, writeFiles(t, t.TempDir(), files)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArchivesNameFoldersOfTheirOwn(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"letters.zip": "letters", "/x/Letters.ZIP": "Letters", "app": "app", "my app (2).zip": "my-app--2", ".zip": "app",
		"...zip": "app", "..": "app",
		"v1.2.zip": "v1.2", "-.zip": "app", "a/b.tar.zip": "b.tar", "ä.zip": "app",
		strings.Repeat("x", 300) + ".zip": strings.Repeat("x", 100),
	} {
		if got := bundle.ArchiveName(path); got != want {
			t.Errorf("archiveName(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestEveryVersionHasAFreshFolder(t *testing.T) {
	t.Parallel()
	data, now := filepath.Join(t.TempDir(), "data"), time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	archive := writeArchive(t, "letters.zip", map[string]string{"Procfile": "web: ./app\n"})
	for _, want := range []string{"20261120T170000.000Z", "20261120T170000.001Z", "20261120T170000.002Z"} {
		dir, err := bundle.UnpackVersion(data, archive, now)
		if want = filepath.Join(data, "versions", want, "letters"); err != nil || dir != want {
			t.Errorf("unpacked in %s, %v; want %s", dir, err, want)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "Procfile")); err != nil || string(text) != "web: ./app\n" {
			t.Errorf("Procfile: %q, %v", text, err)
		}
	}
	broken := filepath.Join(t.TempDir(), "broken.zip")
	if err := os.WriteFile(broken, []byte("PK\x03\x04 and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	if dir, err := bundle.UnpackVersion(data, broken, now); err == nil {
		t.Errorf("a broken archive was unpacked in %s", dir)
	}
	if left, err := os.ReadDir(filepath.Join(data, "versions")); err != nil || len(left) != 3 {
		t.Errorf("%v, %v; want the three versions and nothing of the broken one", left, err)
	}
}

func TestOldVersionsGo(t *testing.T) {
	t.Parallel()
	data, now := t.TempDir(), time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	letters := writeArchive(t, "letters.zip", map[string]string{"Procfile": "web: ./app\n"})
	other := writeArchive(t, "other.zip", map[string]string{"Procfile": "web: ./app\n"})
	unpack := func(archive string, after time.Duration) string {
		t.Helper()
		dir, err := bundle.UnpackVersion(data, archive, now.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	var dirs []string
	for i := range 7 {
		dirs = append(dirs, unpack(letters, time.Duration(i)*time.Hour))
	}
	foreign := unpack(other, -time.Hour)
	unrelated := writeFiles(t, filepath.Join(data, "versions", "mine", "letters"), map[string]string{"x": ""})
	early := unpack(letters, -24*time.Hour) // the clock was set back
	if err := bundle.PruneVersions(early); err != nil {
		t.Error(err)
	}
	for dir, want := range map[string]bool{dirs[0]: false, dirs[1]: false, dirs[2]: true, dirs[3]: true, dirs[4]: true,
		dirs[5]: true, dirs[6]: true, foreign: false, unrelated: true, early: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
	if _, err := os.Stat(filepath.Dir(dirs[0])); err == nil {
		t.Error("the folder of an old version is left, empty")
	}
	unpack(letters, 7*time.Hour)
	if err := bundle.PruneVersions(unpack(letters, 8*time.Hour), dirs[2]); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dirs[2]); err != nil {
		t.Error("a version in use is gone")
	}
	err := bundle.PruneVersions(filepath.Join(t.TempDir(), "no", "such", "folder"))
	if err == nil || !strings.Contains(err.Error(), "deleting old versions of the app: ") {
		t.Errorf("said %v", err)
	}
}

func TestUnpackedVersionsStayShut(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	dir, err := bundle.UnpackVersion(data, writeArchive(t, "a.zip", map[string]string{"Procfile": "web: x\n"}), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{data, filepath.Join(data, "versions"), filepath.Dir(dir)} {
		info, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o700 {
			t.Errorf("%s has the mode %o, want 700", folder, got)
		}
	}
}

func TestLooksIntoArchivesLeaveNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &base.CLI{Out: &out, Err: &out}
	archive := writeArchive(t, "letters.zip", map[string]string{"Procfile": "web: ./app\n"})
	b, err := c.OpenForInspection(archive)
	if err != nil {
		t.Fatal(err)
	}
	if b.Name() != "letters" {
		t.Errorf("the environment would be called %q", b.Name())
	}
	if _, err := c.Out.Write([]byte("in " + b.Dir + "/Procfile\n")); err != nil ||
		out.String() != "in "+archive+"/Procfile\n" {
		t.Errorf("printed %q, %v", &out, err)
	}
	c.End()
	if _, err := os.Stat(filepath.Dir(b.Dir)); err == nil {
		t.Errorf("%s is left", b.Dir)
	}
	_, err = c.OpenForInspection(filepath.Join(t.TempDir(), "missing.zip"))
	c.End()
	if base.ExitCode(err) != base.ExitUsage || !strings.Contains(err.Error(), "folder ") {
		t.Errorf("a missing archive: %v", err)
	}
}
