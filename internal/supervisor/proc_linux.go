package supervisor

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

type process struct {
	pid, ppid, pgrp int
	state           byte
	// start, in clock ticks since boot, distinguishes processes with the same PID.
	start uint64
	// ticks is the CPU time in clock ticks, and memory the resident memory in bytes.
	ticks  uint64
	memory int64
}

func (p process) id() processID { return processID{p.pid, p.start} }

// Zombies do not count as alive, because their parent may never reap them.
func (p process) alive() bool { return p.state != 'Z' && p.state != 'X' }

// parseStat parses /proc/PID/stat, in which the name in parentheses may contain any character. Missing fields are 0.
func parseStat(text []byte) (p process, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return p, false
	}

	fields := bytes.Fields(text[end+1:])
	if len(fields) < 3 || len(fields[0]) != 1 || !isLetter(fields[0][0]) {
		return p, false
	}

	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	ppid, err2 := strconv.Atoi(string(fields[1]))
	pgrp, err3 := strconv.Atoi(string(fields[2]))
	if err != nil || err2 != nil || err3 != nil {
		return p, false
	}
	p = process{pid: pid, ppid: ppid, pgrp: pgrp, state: fields[0][0]}

	const firstField = 3 // proc_pid_stat(5) numbers the fields from the PID
	number := func(field int) (n uint64) {
		if i := field - firstField; i < len(fields) {
			n, _ = strconv.ParseUint(string(fields[i]), 10, 64)
		}
		return n
	}

	p.start = number(22)
	p.ticks = number(14) + number(15)
	p.memory = int64(number(24)) * int64(os.Getpagesize())
	return p, true
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(text)
}

func processes() []process {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	var all []process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// seesItself returns false if /proc belongs to another PID namespace, as in some containers.
func seesItself() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// descendants returns the leader, its group, the marked processes, and all their descendants.
func descendants(all []process, leader int, isMarked func(process) bool) (found []process) {
	included := map[int]bool{leader: true}
	for _, p := range all {
		if p.pgrp == leader || p.pid != os.Getpid() && p.alive() && isMarked(p) {
			included[p.pid] = true
		}
	}

	for isComplete := false; !isComplete; {
		isComplete = true
		for _, p := range all {
			if included[p.ppid] && !included[p.pid] {
				included[p.pid] = true
				isComplete = false
			}
		}
	}

	for _, p := range all {
		if included[p.pid] {
			found = append(found, p)
		}
	}
	return found
}

// execWait limits the time that one search waits for the environments of new processes.
const execWait = 200 * time.Millisecond

// environOf repeats the read until the deadline while a new process's environment is empty, as it is for a moment during
// execve. A daemon whose parent has exited is recognized only by its environment.
func environOf(p process, deadline time.Time) []byte {
	for {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		if errors.Is(err, os.ErrPermission) {
			env, err = environAsOwner(p.pid)
		}
		if len(env) > 0 || err != nil || !p.isNew() || time.Now().After(deadline) {
			return env
		}
		if now, ok := readProcess(p.pid); !ok || !now.alive() {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// isNew reports whether p is at most ten seconds old. It returns false for kernel threads, the children of process 2, which
// have no environment.
func (p process) isNew() bool {
	const ticksPerSecond = 100
	var sinceBoot unix.Timespec
	if p.ppid == 2 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &sinceBoot) != nil {
		return false
	}
	const newFor = 10 // seconds
	return uint64(sinceBoot.Sec) < p.start/ticksPerSecond+newFor
}

// environAsOwner reads as the process's owner, because root in a container may lack the permission to read other users'
// environments.
func environAsOwner(pid int) (env []byte, err error) {
	err = os.ErrPermission // asOwner does nothing for some processes
	asOwner(pid, func(proc string) { env, err = os.ReadFile(proc + "/environ") })
	return env, err
}

// asOwner calls look with a process's /proc directory while this thread accesses files as the process's user. It does
// nothing for root's processes, or if tendril does not run as root.
func asOwner(pid int, look func(proc string)) {
	proc := "/proc/" + strconv.Itoa(pid)
	var owner unix.Stat_t
	if os.Geteuid() != 0 || unix.Stat(proc, &owner) != nil || owner.Uid == 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	group, _ := unix.SetfsgidRetGid(int(owner.Gid))
	user, _ := unix.SetfsuidRetUid(int(owner.Uid))
	look(proc)
	_, _ = unix.SetfsuidRetUid(user)
	_, _ = unix.SetfsgidRetGid(group)
}
