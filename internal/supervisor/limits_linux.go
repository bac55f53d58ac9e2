package supervisor

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

func limitNumbers() map[string]int {
	return map[string]int{
		"as":         unix.RLIMIT_AS,
		"core":       unix.RLIMIT_CORE,
		"cpu":        unix.RLIMIT_CPU,
		"data":       unix.RLIMIT_DATA,
		"fsize":      unix.RLIMIT_FSIZE,
		"locks":      unix.RLIMIT_LOCKS,
		"memlock":    unix.RLIMIT_MEMLOCK,
		"msgqueue":   unix.RLIMIT_MSGQUEUE,
		"nofile":     unix.RLIMIT_NOFILE,
		"nproc":      unix.RLIMIT_NPROC,
		"rss":        unix.RLIMIT_RSS,
		"rtprio":     unix.RLIMIT_RTPRIO,
		"sigpending": unix.RLIMIT_SIGPENDING,
		"stack":      unix.RLIMIT_STACK,
	}
}

func setLimit(pid int, l rlimit, user *identity) error {
	resource := limitNumbers()[l.name]
	set := func() error { return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: l.soft, Max: l.hard}, nil) }
	err := set()
	if errors.Is(err, unix.EPERM) && user.credential() != nil {
		err = withRealUser(user, set)
	}
	var own unix.Rlimit
	if errors.Is(err, unix.EPERM) && unix.Getrlimit(resource, &own) == nil {
		return fmt.Errorf("setting the limit %s to %s: tendril's own limit is %s, and only root can exceed it: "+
			"lower the limit, or raise tendril's", l.name, limitText(l.hard), limitText(own.Max))
	}
	if err != nil {
		return fmt.Errorf("setting the limit %s to %s: %w", l.name, limitText(l.hard), err)
	}
	return nil
}

// withRealUser calls f while the thread has the user's real IDs. Root needs CAP_SYS_RESOURCE to set another user's
// limits, and often lacks it in a container, but a user may lower its own.
func withRealUser(user *identity, f func() error) error {
	runtime.LockOSThread()
	ownUser, ownGroup := unix.Getuid(), unix.Getgid()
	err := setRealIDs(int(user.uid), int(user.gid))
	if err == nil {
		err = f()
	}
	if back := setRealIDs(ownUser, ownGroup); back != nil {
		return errors.Join(err, back) // the thread stays locked, so that it is not reused
	}
	runtime.UnlockOSThread()
	return err
}

// setRealIDs changes the IDs of this thread only, unlike the functions of package unix.
func setRealIDs(user, group int) error {
	const same = ^uintptr(0)
	if _, _, failed := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(group), same, same); failed != 0 {
		return failed
	}
	if _, _, failed := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), same, same); failed != 0 {
		return failed
	}
	return nil
}

func limitText(n uint64) string {
	if n == unlimited {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}
