package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	const me, other, root = 4_000_001, 4_000_002, 0
	for name, c := range map[string]struct {
		mode      fs.FileMode
		uid, gid  uint32
		self      uint32
		text, fix string
	}{
		"own":                      {0o644, me, other, me, "", ""},
		"root's, for a user":       {0o644, root, root, me, "", ""},
		"another user's":           {0o600, other, me, me, "it belongs to user 4000002", "chown 4000001"},
		"another user's, for root": {0o600, other, other, root, "it belongs to user 4000002", "chown root"},
		"another user's, for everybody": {0o666, other, other, root, "every user can write to it (mode 0666)",
			"chmod go-w"},
		"for everybody": {0o666, me, me, me, "every user can write to it (mode 0666)", "chmod go-w"},
		"for the group": {0o664, me, other, me, "group 4000002 can write to it (mode 0664)",
			"chmod g-w"},
		"for the user's own group":     {0o664, me, me, me, "", ""},
		"root's, for the user's group": {0o664, root, me, me, "", ""},
		"root's, for a group, for root": {0o664, root, me, root, "group 4000001 can write to it (mode 0664)",
			"chmod g-w"},
		"root's, for root's, for root": {0o664, root, root, root, "", ""},
		"a folder for everybody": {fs.ModeDir | 0o777, root, root, me, "every user can write to it (mode 0777)",
			"chmod go-w"},
		"a sticky folder": {fs.ModeDir | fs.ModeSticky | 0o777, root, root, me, "", ""},
		"a sticky folder of another one": {fs.ModeDir | fs.ModeSticky | 0o777, other, root, me,
			"it belongs to user 4000002", "chown 4000001"},
		"a file with the sticky bit": {fs.ModeSticky | 0o666, me, me, me, "every user can write to it (mode 0666)",
			"chmod go-w"},
	} {
		var got Error
		if wrong := judge(c.mode, c.uid, c.gid, c.self); wrong != nil {
			got = *wrong
		}
		if got.Text != c.text || got.Fix != c.fix || got.AllUsers != strings.HasPrefix(c.text, "every") {
			t.Errorf("%s: %+v, want %q, %q", name, got, c.text, c.fix)
		}
	}
}

func TestFilesAndFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	for name, mode := range map[string]fs.FileMode{"good": 0o755, "good/deep": 0o755, "open": 0o777,
		"sticky": 0o777 | fs.ModeSticky} {
		if err := errors.Join(os.MkdirAll(at(name), 0o755), os.Chmod(at(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]fs.FileMode{"good/file": 0o644, "good/open": 0o666, "good/deep/file": 0o644,
		"open/file": 0o644, "sticky/file": 0o644} {
		if err := errors.Join(os.WriteFile(at(name), nil, mode), os.Chmod(at(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(at("open/file"), at("good/link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"good/file": "", "good/open": "good/open", "open/file": "open",
		"sticky/file": "", "good/link": "open", "good/missing": ""} {
		expect(t, path, File(at(path)), want, root)
	}
	expect(t, "all below", Folder(at("good"), "deep", "file", "missing"), "", root)
	expect(t, "an open file", Folder(at("good"), "deep", "open"), "good/open", root)
	expect(t, "an open folder", Folder(at("open")), "open", root)
	expect(t, "as many as can be checked", checkFolder(2, at("good"), []string{"deep"}), "", root)
	if err := checkFolder(1, at("good"), []string{"deep"}); err == nil || !strings.Contains(err.Error(), "has more than 1 files") {
		t.Errorf("more than can be checked: %v", err)
	}
}

func TestAccessOfEveryUserIsReportedFirst(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	owned := &Error{Path: filepath.Join(root, "file"), Text: "it belongs to user alice"}
	open := &Error{Path: root, Text: "every user can write to it", AllUsers: true}
	for name, c := range map[string]struct{ first, second, want error }{
		"nothing":        {nil, nil, nil},
		"second alone":   {nil, owned, owned},
		"first alone":    {owned, nil, owned},
		"second is open": {owned, open, open},
		"first is open":  {open, owned, open},
		"of two open":    {open, &Error{AllUsers: true}, open},
	} {
		if got := worse(c.first, c.second); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func expect(t *testing.T, name string, err error, path, root string) {
	t.Helper()
	var wrong *Error
	switch {
	case path == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case path == "":
	case !errors.As(err, &wrong) || wrong.Path != filepath.Join(root, path) || wrong.Fix != "chmod go-w "+wrong.Path:
		t.Errorf("%s: %v, want %s", name, err, path)
	}
}
