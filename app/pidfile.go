package app

import (
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// pidFile is a file with the number of the app's main process: that of the first replica
// of the version that serves, as long as it runs.
type pidFile struct {
	path string // "" means no file
	log  *slog.Logger

	mu    sync.Mutex
	owner *replica
	pids  map[*replica]int // of replicas whose process runs
}

func newPIDFile(path string, log *slog.Logger) *pidFile {
	return &pidFile{path: path, log: log, pids: map[*replica]int{}}
}

// started records the process of a replica. The first of all replicas owns the file.
func (f *pidFile) started(r *replica, pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pids[r] = pid
	if f.owner == nil {
		f.owner = r
	}
	if f.owner == r {
		f.write(pid)
	}
}

// ended records that the process of a replica is gone.
func (f *pidFile) ended(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owner == r {
		f.remove(f.pids[r])
	}
	delete(f.pids, r)
}

// setOwner makes another replica the owner of the file.
func (f *pidFile) setOwner(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.pids[f.owner]
	f.owner = r
	if pid := f.pids[r]; pid != 0 {
		f.write(pid)
	} else {
		f.remove(before)
	}
}

// write replaces the file, whatever it held. It is never read to find out which process to
// signal: a number that an earlier run left may by now be that of a foreign process.
func (f *pidFile) write(pid int) {
	if f.path == "" {
		return
	}
	if err := replaceFile(f.path, pid, 0o644); err != nil {
		f.log.Warn("writing the PID file failed", "err", err)
	}
}

// remove removes the file while it still has the number of this process. A FIFO that took
// its place is not waited for.
func (f *pidFile) remove(pid int) {
	if f.path == "" {
		return
	}
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // it is gone, or belongs to somebody else
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(pid) {
		_ = os.Remove(f.path)
	}
}
