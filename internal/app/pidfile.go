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

// pidFile writes a replica's PID to a file. Tendril never signals the PID in the file, which may have been reused.
type pidFile struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	owner   *replica
	pids    map[*replica]int
	written int
}

func newPIDFile(path string, log *slog.Logger) *pidFile {
	return &pidFile{path: path, log: log, pids: map[*replica]int{}}
}

func (p *pidFile) started(r *replica, pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pids[r] = pid
	if p.owner == nil {
		p.owner = r
	}
	p.update()
}

func (p *pidFile) ended(r *replica) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pids, r)
	p.update()
}

func (p *pidFile) setOwner(r *replica) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner = r
	p.update()
}

func (p *pidFile) update() {
	pid := p.pids[p.owner]
	if p.path == "" || pid == p.written {
		return
	}
	if pid == 0 {
		p.remove()
	} else if err := datadir.Replace(p.path, fmt.Appendln(nil, pid), 0o644); err != nil {
		p.log.Warn("PID file not written", "err", err)
	}
	p.written = pid
}

// remove keeps a file with another PID. It does not block on a FIFO.
func (p *pidFile) remove() {
	file, err := os.OpenFile(p.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
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
