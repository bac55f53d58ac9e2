package supervisor

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// limitNumbers are the limits by the names that /etc/security/limits.conf has
// for them.
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

// setLimit sets one limit of a process that waits behind its latch.
func setLimit(pid int, l rlimit) error {
	resource := limitNumbers()[l.name]
	err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: l.soft, Max: l.hard}, nil)
	var own unix.Rlimit
	if errors.Is(err, unix.EPERM) && unix.Getrlimit(resource, &own) == nil {
		return fmt.Errorf("setting the limit %s to %s: only root may go above the limit of this program, which is %s, and nobody above that of the kernel: lower the one or raise the other",
			l.name, limitText(l.hard), limitText(own.Max))
	}
	if err != nil {
		return fmt.Errorf("setting the limit %s to %s: %w", l.name, limitText(l.hard), err)
	}
	return nil
}

func limitText(n uint64) string {
	if n == unlimited {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}
