package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"tendril/internal/host/datadir"
)

// pidFile is a file with the number of the app's main process: that of the first replica
// of the version that serves, as long as it runs.
type pidFile struct {
	path string // "" means no file
	log  *slog.Logger

	mu      sync.Mutex
	owner   *replica
	pids    map[*replica]int // of replicas whose process runs
	written int
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
	f.update()
}

// ended records that the process of a replica is gone.
func (f *pidFile) ended(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pids, r)
	f.update()
}

// setOwner makes another replica the owner of the file.
func (f *pidFile) setOwner(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owner = r
	f.update()
}

// update replaces the file, whatever it held, or removes it. It is never read to find out
// which process to signal: a number that an earlier run left may by now be that of a foreign
// process.
func (f *pidFile) update() {
	pid := f.pids[f.owner]
	if f.path == "" || pid == f.written {
		return
	}
	if pid == 0 {
		f.remove()
	} else if err := datadir.Replace(f.path, fmt.Appendln(nil, pid), 0o644); err != nil {
		f.log.Warn("writing the PID file failed", "err", err)
	}
	f.written = pid
}

// remove removes the file while it still has the number that was written. A FIFO that took
// its place is not waited for.
func (f *pidFile) remove() {
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // it is gone, or belongs to somebody else
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(f.written) {
		_ = os.Remove(f.path)
	}
}
