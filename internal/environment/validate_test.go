package environment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestPIDFileInAMissingFolderIsRefused(t *testing.T) {
	t.Parallel()
	e := unstarted(t, map[string]string{"pid-file": filepath.Join(t.TempDir(), "none", "app.pid")})
	if err := e.opts.Validate(); !errors.Is(err, ErrSettings) ||
		!strings.Contains(err.Error(), "choose a path in an existing folder") {
		t.Errorf("err = %v", err)
	}
}

// A FIFO might have no reader, and a device must not be replaced.
func TestPIDFileIsARegularFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink("/dev/null", link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, dir, "/dev/null"} {
		err := unstarted(t, map[string]string{"pid-file": path}).opts.Validate()
		if !errors.Is(err, ErrSettings) ||
			!strings.Contains(err.Error(), path+": not a regular file; choose another path") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
