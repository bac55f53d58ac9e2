package getconfig

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func temporary(t *testing.T) *Folder {
	t.Helper()
	f := &Folder{}
	if err := f.Create("", "/usr/bin/tendril", -1, -1); err != nil {
		t.Fatal(err)
	}
	publish(t, f, 1, "secret")
	return f
}

func kill(t *testing.T, f *Folder) {
	t.Helper()
	if err := f.claim.Close(); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestTemporaryFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	killed, running := temporary(t), temporary(t)
	kill(t, killed)
	next := temporary(t)
	if exists(killed.path) {
		t.Error("the answers of a process that was killed are left")
	}
	for _, f := range []*Folder{running, next} {
		if got := greeting(t, fileOf(f.Environ(nil, 1, false)), ""); got != "secret" {
			t.Errorf("a running process has %q", got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); len(left) > 0 || err != nil {
		t.Errorf("left after the end: %v, %v", left, err)
	}
}

func TestOtherFilesInTheTemporaryFolderStay(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file, link := filepath.Join(os.TempDir(), tempPrefix+"file"), filepath.Join(os.TempDir(), tempPrefix+"link")
	folder, foreign := filepath.Join(os.TempDir(), "tendril-else"), filepath.Join(os.TempDir(), tempPrefix+"foreign")
	err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(file, nil, 0o600), os.Symlink(folder, link))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{folder, file, link}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		want = append(want, foreign)
	}
	f := temporary(t)
	for _, path := range want {
		if !exists(path) {
			t.Errorf("%s was removed", path)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// A new folder that is not yet locked looks like a leftover.
func TestStartsAtTheSameTimeKeepTheirFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var starts sync.WaitGroup
	for range 8 {
		starts.Go(func() {
			for range 50 {
				f := &Folder{}
				if err := f.Create("", "/usr/bin/tendril", -1, -1); err != nil {
					t.Error(err)
					return
				}
				if !exists(filepath.Join(f.bin(), programName)) {
					t.Errorf("%s was taken away", f.path)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	starts.Wait()
}
