package testpeer

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	var dir string
	t.Run("a test", func(t *testing.T) {
		dir = MemoryFolder(t)
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}

	const noProcess = 1 << 23 // above the largest process ID of Linux; the ID of an ended process could be reused
	parent := t.TempDir()
	folder := func(pid int) string { return filepath.Join(parent, fmt.Sprintf("%s%d-1", memoryPrefix, pid)) }
	dead, alive := folder(noProcess), folder(os.Getpid())
	for _, dir := range []string{filepath.Join(dead, "queue"), alive} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeFoldersOfDeadProcesses(parent)
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the folder of the dead process is left: %v", err)
	}
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("the folder of a live process is removed: %v", err)
	}

	if hasSpace("/proc") {
		t.Error("a file system without space is used")
	}
}
