package getconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func newFolder(t *testing.T, uid int) (*Folder, string) {
	t.Helper()
	f, data := &Folder{}, t.TempDir()
	if err := os.Chmod(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Create(data, "/usr/bin/tendril", uid, uid); err != nil {
		t.Fatal(err)
	}
	return f, data
}

func publish(t *testing.T, f *Folder, number int, greeting string) {
	t.Helper()
	if err := f.Publish(number, &Facts{Environment: map[string]string{"GREETING": greeting}}); err != nil {
		t.Fatal(err)
	}
}

func greeting(t *testing.T, file, data string) string {
	t.Helper()
	facts, err := Open(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return facts.Environment["GREETING"]
}

func TestEachVersionHasAnswersOfItsOwn(t *testing.T) {
	t.Parallel()
	f, data := newFolder(t, -1)
	if _, err := Open("", data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("answers before any was published: %v", err)
	}
	for number, text := range []string{"first", "second"} {
		publish(t, f, number, text)
		if err := f.Serve(0); err != nil {
			t.Fatal(err)
		}
	}
	second := fileOf(f.Environ(nil, 1, true))
	if shell, hook := greeting(t, "", data), greeting(t, second, ""); shell != "first" || hook != "second" {
		t.Errorf("a shell reads %q, a hook of version 1 %q", shell, hook)
	}
	publish(t, f, 1, "changed")
	if got := greeting(t, second, ""); got != "changed" {
		t.Errorf("published again: %q", got)
	}
	if err := errors.Join(f.Serve(1), f.Remove(0)); err != nil {
		t.Fatal(err)
	}
	if shell, outlived := greeting(t, "", data), greeting(t, fileOf(f.Environ(nil, 0, false)), ""); shell != "changed" ||
		outlived != "changed" {
		t.Errorf("after a change of versions a shell reads %q, a process of the old one %q", shell, outlived)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(data); len(left) > 0 || err != nil {
		t.Errorf("left after the end: %v, %v", left, err)
	}
}

func fileOf(env []string) string {
	i := slices.IndexFunc(env, func(entry string) bool { return strings.HasPrefix(entry, FileVariable+"=") })
	return strings.TrimPrefix(env[i], FileVariable+"=")
}

func TestEnvironNamesFileAndProgram(t *testing.T) {
	t.Parallel()
	f, data := newFolder(t, -1)
	bin := filepath.Join(data, "get-config", "bin")
	base := []string{"PATH=/opt/bin:/bin", "HOME=/root", FileVariable + "=/elsewhere"}
	got := f.Environ(base, 3, false)
	want := []string{"HOME=/root", "PATH=" + bin + ":/opt/bin:/bin",
		FileVariable + "=" + filepath.Join(data, "get-config/v3/facts.json")}
	if !slices.Equal(got, want) || base[0] != "PATH=/opt/bin:/bin" {
		t.Errorf("got %q, want %q; the base is %q", got, want, base)
	}
	if got := f.Environ(nil, 3, false)[0]; got != "PATH="+bin+":"+defaultPath {
		t.Errorf("without a PATH: %q", got)
	}
	if target, err := os.Readlink(filepath.Join(bin, "get-config")); target != "/usr/bin/tendril" || err != nil {
		t.Errorf("get-config is a link to %q, %v", target, err)
	}
}

func TestFolderOfAKilledEnvironmentIsReplaced(t *testing.T) {
	t.Parallel()
	f, data := newFolder(t, -1)
	publish(t, f, 7, "old")
	if err := f.Serve(7); err != nil {
		t.Fatal(err)
	}
	if err := (&Folder{}).Create(data, "/usr/bin/tendril", -1, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("", data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old answers are still there: %v", err)
	}
}

func TestWithoutADataDirectoryTheFolderIsTemporary(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := &Folder{}
	if err := f.Create("", "/usr/bin/tendril", -1, -1); err != nil {
		t.Fatal(err)
	}
	publish(t, f, 1, "hello")
	if got := greeting(t, fileOf(f.Environ(nil, 1, false)), ""); got != "hello" {
		t.Errorf("got %q", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOtherUsersCannotReadTheValues(t *testing.T) {
	t.Parallel()
	users := []int{-1}
	if os.Geteuid() == 0 {
		users = append(users, 65534)
	}
	for _, uid := range users {
		f, data := newFolder(t, uid)
		publish(t, f, 1, "secret")
		err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSymlink != 0 {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			owner := int(info.Sys().(*syscall.Stat_t).Uid)
			isApp := uid >= 0 && d.Name() == appFile
			switch {
			case isApp != (owner == uid), !isApp && owner != os.Geteuid():
				t.Errorf("%s belongs to %d", path, owner)
			case !d.IsDir() && info.Mode().Perm() != 0o600, d.IsDir() && info.Mode().Perm()&0o022 != 0,
				d.IsDir() && d.Name() != "bin" && info.Mode().Perm()&0o044 != 0:
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		asApp := filepath.Base(fileOf(f.Environ(nil, 1, true)))
		if want := map[bool]string{true: appFile, false: ownerFile}[uid >= 0]; asApp != want {
			t.Errorf("the app's user %d is given %s", uid, asApp)
		}
		if hook := filepath.Base(fileOf(f.Environ(nil, 1, false))); hook != ownerFile {
			t.Errorf("a hook is given %s", hook)
		}
	}
}
