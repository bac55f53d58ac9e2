package testpeer

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const (
	memory       = "/dev/shm"
	memoryPrefix = "tendril-test-"
)

// MemoryFolder returns a folder for tests that do not test the disk, in memory if it has space. It is removed at the end
// of the test or by a later test process.
func MemoryFolder(t interface {
	Cleanup(func())
	Fatal(...any)
}) string {
	removeLeftovers()
	for _, parent := range []string{memory, ""} {
		if parent == memory && !hasSpace(memory) {
			continue
		}
		dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", memoryPrefix, os.Getpid()))
		if err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	t.Fatal("no directory for temporary files")
	return ""
}

// leastSpace exceeds what a package's tests need at once; a container's /dev/shm often has 64 MB.
const leastSpace = 1 << 30

func hasSpace(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && int64(s.Bavail)*int64(s.Bsize) >= leastSpace
}

var removeLeftovers = sync.OnceFunc(func() { removeFoldersOfDeadProcesses(memory) })

func removeFoldersOfDeadProcesses(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, memoryPrefix+"*"))
	for _, dir := range dirs {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), memoryPrefix), "-")
		if pid, err := strconv.Atoi(text); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			os.RemoveAll(dir)
		}
	}
}
