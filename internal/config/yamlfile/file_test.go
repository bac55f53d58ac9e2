package yamlfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	fifo := filepath.Join(dir, "fifo")
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(os.WriteFile(file, []byte("abcdef"), 0o600), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]string{3: "abcd", 6: "abcdef"} {
		data, info, err := ReadFile(file, most)
		if err != nil || string(data) != want || info.Size() != 6 {
			t.Errorf("at most %d bytes: %q, %v", most, data, err)
		}
	}
	for _, path := range []string{dir, fifo, socket} {
		if _, _, err := ReadFile(path, 3); !errors.Is(err, ErrIrregular) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := ReadFile(file+"s", 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
