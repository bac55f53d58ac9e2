package supervisor

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tendril/internal/supervisor/procgroup"
)

// killRounds bounds the search for processes that start others while they are
// being killed.
const killRounds = 50

// attach has the process start in its control group.
func (t *processTree) attach(attr *syscall.SysProcAttr) {
	if t.cgroup != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, t.cgroup.fd
	}
}

// members returns all its living processes, the leader among them while it lives.
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
	for _, p := range descent(processes(), leader, t.isMarked) {
		if p.alive() {
			seen[p.id()] = true
			found = append(found, p)
		}
	}
	t.seen = seen // what is gone never comes back
	return found
}

// isMarked reports whether p carries the mark, or did. The caller holds k.mu.
func (t *processTree) isMarked(p process) bool {
	if t.seen[p.id()] {
		return true
	}
	if t.mark == "" {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if errors.Is(err, os.ErrPermission) {
		env = environAsOwner(p.pid)
	}
	return hasEntry(env, procgroup.MarkVariable+"="+t.mark)
}

// hasEntry reports whether the text of a /proc/PID/environ holds entry.
func hasEntry(environ []byte, entry string) bool {
	for line := range bytes.SplitSeq(environ, []byte{0}) {
		if string(line) == entry {
			return true
		}
	}
	return false
}

// isSame reports whether p, which was found before, is still that process and
// not one that got its number since.
func (t *processTree) isSame(p process) bool {
	if t.cgroup != nil {
		return t.cgroup.holds(p.pid)
	}
	now, ok := readProcess(p.pid)
	return ok && now.id() == p.id()
}

// signal reaches those that left the process group; the rest has sig already.
// KILL is repeated until nothing new is found.
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

// signalEscaped sends sig to each that left the process group and is not in
// done, adds it there, and returns how many there were.
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

// signalOne holds on to the process before it looks who it is, so that its
// number cannot change hands between the two.
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
		// A system without such handles: the moment between is short.
		_ = syscall.Kill(p.pid, sig)
	}
}

// empty reports whether none but the leader is alive. What was started in the
// very moment of a KILL gets its own.
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

// leave has what the leader started go on without it when it is reaped, guarded as before. It reports whether there is
// anything.
func (g *osGroup) leave() bool {
	if g.tree.marker() == "" || g.tree.empty() {
		return false
	}
	g.guard.Add(0, g.tree.marker())
	g.guard.Remove(g.PID(), g.tree.marker())
	g.tree.born(noLeader)
	return true
}

// release gives up the control group; nothing may live in it.
func (t *processTree) release() {
	if t.cgroup != nil {
		t.cgroup.remove()
	}
}

// empty looks at processes: asking with signal 0 would find the unreaped
// leader, and any other zombie.
func (g *osGroup) empty() bool { return g.tree.empty() }

// newCgroupTree makes a control group in parent, or returns nil where it may not.
func newCgroupTree(parent cgroupFolder) *processTree {
	if parent.folder == "" {
		return nil
	}
	name := "tendril-" + rand.Text()
	c := &cgroup{folder: cgroupFolder{
		folder: filepath.Join(parent.folder, name),
		path:   strings.TrimSuffix(parent.path, "/") + "/" + name,
	}}
	if err := os.Mkdir(c.folder.folder, 0o755); err != nil {
		return nil
	}
	fd, err := unix.Open(c.folder.folder, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = os.Remove(c.folder.folder)
		return nil
	}
	c.fd = fd
	return &processTree{cgroup: c}
}
