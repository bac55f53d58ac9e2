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
func (p *pidFile) started(r *replica, pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids[r] = pid
	if p.owner == nil {
		p.owner = r
	}
	p.update()
}

// ended records that the process of a replica is gone.
func (p *pidFile) ended(r *replica) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pids, r)
	p.update()
}

// setOwner makes another replica the owner of the file.
func (p *pidFile) setOwner(r *replica) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner = r
	p.update()
}

// update replaces the file, whatever it held, or removes it. It is never read to find out
// which process to signal: a number that an earlier run left may by now be that of a foreign
// process.
func (p *pidFile) update() {
	pid := p.pids[p.owner]
	if p.path == "" || pid == p.written {
		return
	}
	if pid == 0 {
		p.remove()
	} else if err := datadir.Replace(p.path, fmt.Appendln(nil, pid), 0o644); err != nil {
		p.log.Warn("writing the PID file failed", "err", err)
	}
	p.written = pid
}

// remove removes the file while it still has the number that was written. A FIFO that took
// its place is not waited for.
func (p *pidFile) remove() {
	file, err := os.OpenFile(p.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // it is gone, or belongs to somebody else
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(p.written) {
		_ = os.Remove(p.path)
	}
}
