package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestDirectoriesThatOthersOwnOrMayWriteAreUnsafe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode           fs.FileMode
		uid, gid, self uint32
		want           string
	}{
		"private":                         {0o700, 1000, 1000, 1000, ""},
		"readable":                        {0o755, 1000, 100, 1000, ""},
		"root's own":                      {0o755, 0, 0, 0, ""},
		"root's, used by another":         {0o755, 0, 0, 1000, ""},
		"writable by the user's group":    {0o775, 1000, 1000, 1000, ""},
		"a volume of the user's group":    {fs.ModeSetgid | 0o775, 0, 65532, 65532, ""},
		"writable by a group of many":     {0o775, 1000, 100, 1000, "chmod go-w /data"},
		"writable by everybody":           {0o777, 1000, 1000, 1000, "chmod go-w /data"},
		"writable by everybody, sticky":   {fs.ModeSticky | 0o777, 0, 0, 1000, "(mode 0777)"},
		"root's, writable by its group":   {0o775, 0, 0, 1000, "chmod go-w /data"},
		"another user's":                  {0o700, 1001, 1001, 1000, "belongs to user 1001, but this is user 1000"},
		"another user's, used by root":    {0o700, 1001, 1001, 0, "belongs to user 1001, but this is user 0"},
		"another user's that all may use": {0o777, 1001, 1001, 1000, "belongs to user 1001"},
	} {
		err := checkOwner("/data", c.mode, c.uid, c.gid, c.self)
		if c.want == "" && err != nil || c.want != "" &&
			(!errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestMake(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := Make(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("made with %v, %v", info.Mode(), err)
	}
	if err := Make(dir); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Make(dir); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a directory of mode 0777: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Make(filepath.Join(dir, "file")); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a file in its place: %v", err)
	}
}

func TestFilesAreRegular(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("precious"), []byte("precious"), 0o600),
		os.Symlink(at("precious"), at("link")),
		os.Symlink(at("nothing"), at("dangling")),
		syscall.Mkfifo(at("fifo"), 0o600),
		os.Mkdir(at("folder"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "dangling", "fifo", "folder"} {
		if f, err := OpenFile(at(name)); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
		if err := CheckFile(at(name)); err == nil || !strings.Contains(err.Error(), at(name)) ||
			!strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(at("nothing")); err == nil {
		t.Error("a file was made behind a link")
	}
	for _, name := range []string{"new", "new", "precious"} {
		f, err := OpenFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
		f.Close()
		if err := CheckFile(at(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckFile(at("missing")); err != nil {
		t.Errorf("a file that is missing: %v", err)
	}
	if data, err := os.ReadFile(at("precious")); err != nil || string(data) != "precious" {
		t.Errorf("the content became %q, %v", data, err)
	}
}

func TestDirectoryOfAnEnvironment(t *testing.T) {
	t.Parallel()
	for environment, want := range map[string]string{"": "/state/environments", "shop": "/state/environments/shop"} {
		if got := Of("/state", environment); got != want {
			t.Errorf("of %q it is %s, want %s", environment, got, want)
		}
	}
}

func TestReplaceLeavesNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	for _, content := range []string{"old", "new and longer", ""} {
		if err := Replace(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, missing := os.Stat(path)
		if err != nil || missing != nil || string(got) != content || info.Mode() != 0o640 {
			t.Errorf("it holds %q with mode %v, %v", got, info.Mode(), errors.Join(err, missing))
		}
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(folder, nil, 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if err := Replace(filepath.Join(dir, "none", "state"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

func TestAllowTraversal(t *testing.T) {
	t.Parallel()
	for before, want := range map[fs.FileMode]fs.FileMode{0o700: 0o710, 0o711: 0o710, 0o750: 0o751, 0o755: 0o755} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, before), AllowTraversal(dir, os.Getegid())); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%v became %v, %v; want %v", before, info.Mode(), err, want)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	if AllowTraversal(none, os.Getegid()) == nil || AllowGroupTraversal(none, os.Getegid()) == nil {
		t.Error("a folder that is not there was let through")
	}
}

func TestIdentityDiffersWhenAPathLeadsElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, file, link := filepath.Join(dir, "data"), filepath.Join(dir, "data", "file"), filepath.Join(dir, "link")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.Mkdir(data, 0o700))
	do(os.WriteFile(file, nil, 0o600))
	do(os.Symlink(data, link))
	all := Identify(data, file, link, filepath.Join(dir, "missing"))
	want := func(what, text string) {
		t.Helper()
		if err := all.Changed(); err == nil && text != "" || err != nil && err.Error() != text {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
	want("at first", "")
	do(os.WriteFile(file, []byte("new content"), 0o600))
	want("another content", "")
	do(os.Rename(file, file+".old"))
	want("a renamed file", file+" was removed or moved")
	do(os.WriteFile(file, nil, 0o600))
	want("another file", file+" was replaced")
	do(os.Rename(file+".old", file))
	want("the file is back", "")
	do(os.Mkdir(data+"2", 0o700))
	do(os.Remove(link))
	do(os.Symlink(data+"2", link))
	want("another link", link+" was replaced")
	do(os.Rename(data, data+".old"))
	do(os.WriteFile(data, nil, 0o600))
	want("a file for the directory", data+" was replaced")
}

func TestJSONFilesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	got := map[string]int{"kept": 1}
	if err := ReadJSON(path, &got); err != nil || len(got) != 1 {
		t.Errorf("a missing file: %v, %v", got, err)
	}
	if err := ReplaceJSON(path, map[string]int{"replaced": 2}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("written with %v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "{\n  \"replaced\": 2\n}\n" {
		t.Errorf("written: %q, %v", text, err)
	}
	if err := ReadJSON(path, &got); err != nil || got["replaced"] != 2 {
		t.Errorf("read: %v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReadJSON(path, &got); err == nil {
		t.Error("a damaged file was read")
	}
	link := path + "-link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := ReadJSON(link, &got); err == nil || !strings.Contains(err.Error(), "a symbolic link") {
		t.Errorf("a symbolic link: %v", err)
	}
}
