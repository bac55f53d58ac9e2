package supervisor

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tendril/internal/supervisor/procgroup"
)

// killRounds limits how often a kill searches for new processes.
const killRounds = 50

func (t *processTree) attach(attr *syscall.SysProcAttr) {
	if t.cgroup != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, t.cgroup.fd
	}
}

func (t *processTree) members() []process {
	if t.cgroup != nil {
		return t.cgroup.members()
	}

	leader := int(t.pid.Load())
	if leader == 0 || !seesItself() {
		return nil
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	var found []process
	seen := map[processID]bool{}
	deadline := time.Now().Add(execWait)
	isMarked := func(p process) bool { return t.isMarked(p, deadline) }
	for _, p := range descendants(processes(), leader, isMarked) {
		if p.alive() {
			seen[p.id()] = true
			found = append(found, p)
		}
	}

	t.seen = seen
	return found
}

// t.mu must be held.
func (t *processTree) isMarked(p process, deadline time.Time) bool {
	if t.seen[p.id()] {
		return true
	}
	if t.mark == "" {
		return false
	}
	return hasEntry(environOf(p, deadline), procgroup.MarkVariable+"="+t.mark)
}

func hasEntry(environ []byte, entry string) bool {
	for line := range bytes.SplitSeq(environ, []byte{0}) {
		if string(line) == entry {
			return true
		}
	}
	return false
}

func (t *processTree) isSame(p process) bool {
	if t.cgroup != nil {
		return t.cgroup.holds(p.pid)
	}
	now, ok := readProcess(p.pid)
	return ok && now.id() == p.id()
}

// signal sends sig to processes outside the process group. It repeats SIGKILL until it finds no new process.
func (t *processTree) signal(sig syscall.Signal) {
	if sig != syscall.SIGKILL {
		t.signalEscaped(sig, map[processID]bool{})
		return
	}
	t.killed.Store(true)
	if t.cgroup != nil && t.cgroup.kill() {
		return
	}
	done := map[processID]bool{}
	for range killRounds {
		if t.signalEscaped(sig, done) == 0 {
			return
		}
	}
}

func (t *processTree) signalEscaped(sig syscall.Signal, done map[processID]bool) (n int) {
	leader := int(t.pid.Load())
	for _, p := range t.members() {
		if p.pgrp == leader || done[p.id()] {
			continue
		}
		done[p.id()] = true
		n++
		t.signalOne(p, sig)
	}
	return n
}

// signalOne opens a pidfd before it checks the process's identity, so that the PID cannot be reused in between.
func (t *processTree) signalOne(p process, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	switch {
	case err == nil:
		defer unix.Close(fd)
		if t.isSame(p) {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	case errors.Is(err, unix.ESRCH):
	case t.isSame(p):
		// Without a pidfd, the PID may be reused just before the signal is sent.
		_ = syscall.Kill(p.pid, sig)
	}
}

// empty ignores the leader. If the tree was killed, empty also kills processes started during the kill.
func (t *processTree) empty() bool {
	if t.cgroup != nil {
		if t.cgroup.empty() {
			return true
		}
		if t.killed.Load() {
			t.cgroup.kill()
		}
		return false
	}

	leader, none := int(t.pid.Load()), true
	for _, p := range t.members() {
		if p.pid == leader {
			continue
		}
		none = false
		if t.killed.Load() {
			t.signalOne(p, syscall.SIGKILL)
		}
	}
	return none
}

// leave guards the descendants of a leader about to be reaped. It reports whether there are any.
func (g *osGroup) leave() bool {
	if g.tree.marker() == "" || g.tree.empty() {
		return false
	}
	g.guard.Add(0, g.tree.marker())
	g.guard.Remove(g.PID(), g.tree.marker())
	g.tree.born(noLeader)
	return true
}

func (t *processTree) release() {
	if t.cgroup != nil {
		t.cgroup.remove()
	}
}

// empty does not use signal 0, because zombies such as the leader also accept it.
func (g *osGroup) empty() bool { return g.tree.empty() }

func newCgroupTree(parent cgroupFolder) *processTree {
	if parent.folder == "" {
		return nil
	}

	name := "tendril-" + rand.Text()
	c := &cgroup{cgroupFolder: cgroupFolder{
		folder: filepath.Join(parent.folder, name),
		path:   strings.TrimSuffix(parent.path, "/") + "/" + name,
	}}
	if err := os.Mkdir(c.folder, 0o755); err != nil {
		return nil
	}

	fd, err := unix.Open(c.folder, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = os.Remove(c.folder)
		return nil
	}

	c.fd = fd
	return &processTree{cgroup: c}
}
