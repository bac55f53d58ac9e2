package procgroup

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes make a child the leader of its own group and have the kernel kill it
// when the thread that started it ends.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
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
