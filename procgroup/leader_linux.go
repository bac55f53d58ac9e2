package procgroup

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes make a child the leader of its own group and have the kernel kill it
// when the thread that started it ends.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// HasOthers reports whether a process of the group other than its leader, which must
// not be reaped, is alive.
func (l *Leader) HasOthers() bool {
	entries, _ := os.ReadDir("/proc")
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		return err == nil && e.Name() != strconv.Itoa(l.PID()) && inGroup(stat, l.PID())
	})
}

// inGroup reports whether stat, the text of a /proc/PID/stat, is that of a living process
// of the group.
func inGroup(stat []byte, group int) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // a name may contain anything
	if len(fields) < 3 {
		return false
	}
	state, pgrp := string(fields[0]), string(fields[2])
	return pgrp == strconv.Itoa(group) && state != "Z" && state != "X"
}

// Await returns when the leader has ended, and leaves it unreaped.
func (l *Leader) Await() {
	for {
		err := unix.Waitid(unix.P_PID, l.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Reap reaps the leader, after Await, and returns what exec.Cmd.Wait says.
func (l *Leader) Reap() error {
	l.err = l.Cmd.Wait()
	return l.err
}
