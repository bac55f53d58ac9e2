package tasks

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestChangesOfTheFileAreNoticed(t *testing.T) {
	t.Parallel()
	const text = "version: 1\ncron: []\n"
	written := time.Now().Add(-time.Hour)
	write := func(path string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(path string) error
		looks  int
	}{
		{"nothing", func(string) error { return nil }, 0},
		{"written", func(path string) error { return os.WriteFile(path, []byte("version: 1\ncron: null\n"), 0o600) }, 1},
		{"replaced by one of the same size and time", func(path string) error {
			write(path + ".new")
			return os.Rename(path+".new", path)
		}, 1},
		{"deleted", os.Remove, absentChecks},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "cron.yaml")
			write(path)
			var f watchedFile
			f.set(File{Path: path, stamp: stamp(path)})
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			noticed := 0
			for look := 1; look <= 2*absentChecks; look++ {
				if f.noticeChange() {
					if noticed > 0 {
						t.Errorf("noticed again at look %d", look)
					}
					noticed = look
				}
			}
			if noticed != c.looks {
				t.Errorf("noticed at look %d, want %d", noticed, c.looks)
			}
		})
	}
}

func TestTheFileMustBeRegular(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cron.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Read(path)
	if err == nil || !strings.Contains(err.Error(), "not a regular file") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
