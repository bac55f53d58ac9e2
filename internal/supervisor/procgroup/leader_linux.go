package procgroup

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes returns attributes for the leader of a new process group, killed when its parent thread exits.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Await waits until the leader has exited, without reaping it.
func (l *Leader) Await() {
	for {
		err := unix.Waitid(unix.P_PID, l.PID(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Reap reaps the leader after Await, and returns the result of exec.Cmd.Wait.
func (l *Leader) Reap() error {
	l.err = l.Cmd.Wait()
	return l.err
}
