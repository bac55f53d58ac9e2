package supervisor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes make a child the leader of its own group and have the kernel
// kill it when the thread that started it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitLeader returns when the leader has ended, and leaves it unreaped.
func (g *osGroup) awaitLeader() {
	for {
		err := unix.Waitid(unix.P_PID, g.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// finishWait reaps the leader.
func (g *osGroup) finishWait() { g.waitErr = g.cmd.Wait() }

// empty looks through /proc: asking with signal 0 would find the unreaped
// leader, and any other zombie.
func (g *osGroup) empty() bool {
	leader := g.cmd.Process.Pid
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	if len(stats) == 0 {
		return true
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if survives(text, leader) {
			return false
		}
	}
	return true
}

// survives reports whether the text of a /proc/PID/stat is that of a living
// member of the leader's group other than the leader. Zombies do not live:
// whoever should reap them may never do so.
func survives(stat []byte, leader int) bool {
	pid, state, pgrp, ok := parseStat(stat)
	return ok && pgrp == leader && pid != leader && state != 'Z' && state != 'X'
}

// parseStat reads the process id, state and process group from the text of
// /proc/PID/stat. The name in parentheses may contain anything, also
// parentheses.
func parseStat(text []byte) (pid int, state byte, pgrp int, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return 0, 0, 0, false
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 3 || len(fields[0]) != 1 {
		return 0, 0, 0, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	pgrp, err2 := strconv.Atoi(string(fields[2]))
	return pid, fields[0][0], pgrp, err == nil && err2 == nil
}
