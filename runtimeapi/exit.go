package runtimeapi

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit is how one process ended.
type Exit struct {
	// Code is the exit status, 0 to 255; -1 when a signal ended the process or
	// it never started.
	Code int
	// Signal is the name of the signal that ended it ("SIGKILL"), or "".
	Signal string
	// Err is why it could not be started; nil when it ran.
	Err error
	// Ran is how long it had run.
	Ran time.Duration
}

// String says it in a few words: "exit status 1", "killed by SIGSEGV".
func (e Exit) String() string {
	switch {
	case e.Err != nil:
		return "could not start: " + e.Err.Error()
	case e.Signal != "":
		return "killed by " + e.Signal
	default:
		return fmt.Sprintf("exit status %d", e.Code)
	}
}

// lambda says it in the words that Lambda uses.
func (e Exit) lambda() string {
	switch {
	case e.Err != nil:
		return "Couldn't start the runtime: " + e.Err.Error()
	case e.Signal != "":
		return "Runtime exited with error: signal: " + unix.SignalNum(e.Signal).String()
	case e.Code == 0:
		return "Runtime exited without providing a reason"
	default:
		return fmt.Sprintf("Runtime exited with error: exit status %d", e.Code)
	}
}

// exitOf translates what waiting left behind. An error beside a state is the
// state's own, or says that another program kept the output open: the process
// ended all the same.
func exitOf(state *os.ProcessState, err error) Exit {
	if state == nil {
		return Exit{Code: -1, Err: fmt.Errorf("waiting for the process: %w", err)}
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return Exit{Code: state.ExitCode()}
	}
	name := unix.SignalName(status.Signal())
	if name == "" {
		name = fmt.Sprintf("signal %d", int(status.Signal()))
	}
	return Exit{Code: -1, Signal: name}
}
