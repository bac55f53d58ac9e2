package supervisor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tendril/procgroup"
)

// killRounds bounds the search for processes that start others while they are
// being killed.
const killRounds = 50

// attach has the process start in its control group.
func (k *kin) attach(attr *syscall.SysProcAttr) {
	if k.cgroup != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, k.cgroup.fd
	}
}

// members returns all living kin, the leader among them while it lives.
func (k *kin) members() []process {
	if k.cgroup != nil {
		return k.cgroup.members()
	}
	leader := int(k.pid.Load())
	if leader == 0 || !seesItself() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []process
	seen := map[processID]bool{}
	for _, p := range descent(processes(), leader, k.isMarked) {
		if p.alive() {
			seen[p.id()] = true
			found = append(found, p)
		}
	}
	k.seen = seen // what is gone never comes back
	return found
}

// isMarked reports whether p carries the mark, or did. The caller holds k.mu.
func (k *kin) isMarked(p process) bool {
	if k.seen[p.id()] {
		return true
	}
	if k.mark == "" {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if errors.Is(err, os.ErrPermission) {
		env = environAsOwner(p.pid)
	}
	return hasEntry(env, procgroup.MarkVariable+"="+k.mark)
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

// isKin reports whether p, which was found before, is still that process and
// not one that got its number since.
func (k *kin) isKin(p process) bool {
	if k.cgroup != nil {
		return k.cgroup.holds(p.pid)
	}
	now, ok := readProcess(p.pid)
	return ok && now.id() == p.id()
}

// signal reaches those that left the process group; the rest has sig already.
// KILL is repeated until nothing new is found.
func (k *kin) signal(sig syscall.Signal) {
	if sig != syscall.SIGKILL {
		k.signalEscaped(sig, map[processID]bool{})
		return
	}
	k.doomed.Store(true)
	if k.cgroup != nil && k.cgroup.kill() {
		return
	}
	done := map[processID]bool{}
	for range killRounds {
		if k.signalEscaped(sig, done) == 0 {
			return
		}
	}
}

// signalEscaped sends sig to each that left the process group and is not in
// done, adds it there, and returns how many there were.
func (k *kin) signalEscaped(sig syscall.Signal, done map[processID]bool) (n int) {
	leader := int(k.pid.Load())
	for _, p := range k.members() {
		if p.pgrp == leader || done[p.id()] {
			continue
		}
		done[p.id()] = true
		n++
		k.signalOne(p, sig)
	}
	return n
}

// signalOne holds on to the process before it looks who it is, so that its
// number cannot change hands between the two.
func (k *kin) signalOne(p process, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	switch {
	case err == nil:
		defer unix.Close(fd)
		if k.isKin(p) {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	case errors.Is(err, unix.ESRCH):
	case k.isKin(p):
		// A system without such handles: the moment between is short.
		_ = syscall.Kill(p.pid, sig)
	}
}

// empty reports whether none but the leader is alive. What was started in the
// very moment of a KILL gets its own.
func (k *kin) empty() bool {
	if k.cgroup != nil {
		if k.cgroup.empty() {
			return true
		}
		if k.doomed.Load() {
			k.cgroup.kill()
		}
		return false
	}
	leader, none := int(k.pid.Load()), true
	for _, p := range k.members() {
		if p.pid == leader {
			continue
		}
		none = false
		if k.doomed.Load() {
			k.signalOne(p, syscall.SIGKILL)
		}
	}
	return none
}

// release gives up the control group; nothing may live in it.
func (k *kin) release() {
	if k.cgroup != nil {
		k.cgroup.remove()
	}
}

// empty looks at processes: asking with signal 0 would find the unreaped
// leader, and any other zombie.
func (g *osGroup) empty() bool { return g.kin.empty() }

// usage adds up what the living kin take. A control group also remembers what
// those used that are gone.
func (k *kin) usage() Usage {
	var u Usage
	for _, p := range k.members() {
		u.Processes++
		u.CPU += time.Duration(p.cpu) * clockTick
		u.Memory += int64(p.pages) * int64(os.Getpagesize())
	}
	if k.cgroup != nil {
		if cpu, ok := k.cgroup.cpu(); ok {
			u.CPU = cpu
		}
	}
	return u
}

// cpu reads what the whole group has used.
func (c *cgroup) cpu() (time.Duration, bool) {
	text, err := os.ReadFile(filepath.Join(c.folder, "cpu.stat"))
	if err != nil {
		return 0, false
	}
	return cgroupCPU(string(text))
}

// cgroupCPU reads the time from the text of a cpu.stat.
func cgroupCPU(stat string) (time.Duration, bool) {
	for line := range strings.Lines(stat) {
		if value, ok := strings.CutPrefix(line, "usage_usec "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(n) * time.Microsecond, err == nil
		}
	}
	return 0, false
}
