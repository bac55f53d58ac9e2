package bundle

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

func publicFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "share")
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

func mayRun(t *testing.T, uid, gid uint32, dir string, argv ...string) bool {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = "/"
	if dir != "" {
		cmd = exec.Command("/bin/sh", append([]string{"-c", `cd "$0" && exec "$@"`, dir}, argv...)...)
		cmd.Dir = "/"
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	out, err := cmd.CombinedOutput()
	t.Logf("as %d:%d in %q, %q: %v %s", uid, gid, dir, argv, err, out)
	return err == nil
}

// The users and groups need not exist.
const appUser, appGroup, otherUser, otherGroup = 61001, 61002, 61003, 61004

func TestOnlyTheGroupOfTheAppGetsIntoItsVersion(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED that other users cannot read versions of the app: this needs root")
	}
	data := filepath.Join(publicFolder(t), "data")
	zipped := archive(t, item{name: "Procfile", data: "web: ./run"},
		item{name: "bin/run", data: "#!/bin/sh\ncat ../secret", mode: 0o755}, item{name: "secret", data: "x"})
	path := filepath.Join(t.TempDir(), "app.zip")
	if err := os.WriteFile(path, zipped, 0o600); err != nil {
		t.Fatal(err)
	}
	unpack := func() string {
		t.Helper()
		dir, err := UnpackVersion(data, path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir, later := unpack(), unpack()
	for _, umask := range []int{0o022, 0o077} {
		before := syscall.Umask(umask)
		fresh := unpack()
		syscall.Umask(before)
		if err := ShareVersion(data, fresh, appGroup, true); err != nil {
			t.Fatal(err)
		}
		if !mayRun(t, appUser, appGroup, filepath.Join(fresh, "bin"), "./run") {
			t.Errorf("umask %o: the app cannot run", umask)
		}
		if mayRun(t, appUser, appGroup, fresh, "touch", "new") {
			t.Errorf("umask %o: the app can write", umask)
		}
	}
	if err := ShareVersion(data, dir, appGroup, true); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{dir + "/secret", filepath.Dir(dir), filepath.Dir(filepath.Dir(dir)), data, later} {
		if mayRun(t, otherUser, otherGroup, "", "ls", file+"/.") || mayRun(t, otherUser, otherGroup, "", "cat", file) {
			t.Errorf("somebody else can read %s", file)
		}
	}
	if mayRun(t, appUser, appGroup, "", "ls", later) || mayRun(t, appUser, appGroup, "", "ls", data) {
		t.Error("the app can read what is not its version")
	}
	if err := os.Link(dir+"/secret", dir+"/linked"); err != nil {
		t.Fatal(err)
	}
	if err := ShareVersion(data, dir, otherGroup, true); err != nil {
		t.Fatal(err)
	}
	if mayRun(t, otherUser, otherGroup, dir, "cat", "secret") ||
		!mayRun(t, otherUser, otherGroup, dir, "cat", "Procfile") {
		t.Error("a file with another name elsewhere was given away, or one without was not")
	}
	if err := RestrictVersions(data); err != nil {
		t.Fatal(err)
	}
	if mayRun(t, otherUser, otherGroup, dir, "cat", "Procfile") || mayRun(t, appUser, appGroup, dir, "cat", "Procfile") {
		t.Error("a closed version can be read")
	}
	if err := ShareVersion(data, dir, otherGroup, false); err != nil ||
		!mayRun(t, otherUser, otherGroup, dir, "cat", "Procfile") {
		t.Errorf("a version that ran before cannot be read: %v", err)
	}
	if err := ShareVersion(data, t.TempDir(), appGroup, true); err != nil {
		t.Errorf("a folder elsewhere: %v", err)
	}
}

// An earlier release created versions that other users could read.
func TestVersionsAreClosed(t *testing.T) {
	t.Parallel()
	for chosen, want := range map[fs.FileMode]fs.FileMode{0o711: 0o700, 0o710: 0o700, 0o700: 0o700, 0o755: 0o755,
		0o750: 0o750} {
		if os.Geteuid() != 0 {
			want = chosen
		}
		data := t.TempDir()
		opened := filepath.Join(data, versionsFolder, time.Now().UTC().Format(versionTime))
		mine := filepath.Join(data, versionsFolder, "mine")
		for _, dir := range []string{filepath.Join(opened, "app"), mine} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(data, chosen); err != nil {
			t.Fatal(err)
		}
		if err := RestrictVersions(data); err != nil {
			t.Fatal(err)
		}
		var modes []fs.FileMode
		for _, dir := range []string{data, filepath.Dir(opened), opened, mine} {
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			modes = append(modes, info.Mode().Perm())
		}
		if want := []fs.FileMode{want, 0o700, 0o700, 0o755}; !slices.Equal(modes, want) {
			t.Errorf("data directory of mode %o: %o, want %o", chosen, modes, want)
		}
	}
	if err := RestrictVersions(t.TempDir()); err != nil {
		t.Errorf("without versions: %v", err)
	}
}
