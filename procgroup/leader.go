package procgroup

import "os/exec"

// Leader is the first process of a group, started with [Attributes].
type Leader struct {
	// Cmd is its command, which somebody else started.
	Cmd *exec.Cmd
	// err is what waiting for it said.
	err error
}

// PID is the number of the leader and of its group.
func (l *Leader) PID() int { return l.Cmd.Process.Pid }
