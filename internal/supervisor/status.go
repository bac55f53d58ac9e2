package supervisor

import (
	"cmp"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// State is the state of a process.
type State string

// The states of a process.
const (
	// Starting includes waiting for the port.
	Starting State = "starting"
	// Running does not imply [Status.Ready].
	Running State = "running"
	// Waiting means that the process has exited and awaits its restart.
	Waiting State = "waiting"
	// Ending means that the process is being stopped, or has exited while descendants still run.
	Ending State = "stopping"
	// Stopped means that the process was not started, or was stopped by the supervisor.
	Stopped State = "stopped"
	// Finished means that the process exited with status 0 and [Process.MayFinish] is set.
	Finished State = "finished"
	// Failed means that the process failed too often or cannot be run. It is down until the next attempt to revive it,
	// if any.
	Failed State = "failed"
)

// Status is a snapshot of a process's state.
type Status struct {
	Name  string
	State State
	Port  int
	PID   int
	Since time.Time
	// Restarts is the number of automatic restarts.
	Restarts int
	// Ready means that the process has passed its check. Otherwise, Reason explains why not; may be "".
	Ready     bool
	Reason    string
	LastReady time.Time
	// LastExit may be nil.
	LastExit *Exit
}

// Exit describes how a run ended.
type Exit struct {
	Code   int
	Signal string
	// Missing is text about a file in the command that does not exist or is not executable; may be "".
	Missing string
	// Daemonized means that the process exited with status 0 soon after its start, leaving descendants.
	Daemonized bool
	Err        error
	At         time.Time
	Ran        time.Duration
}

// String returns text such as "exit status 1" or "killed by SIGSEGV".
func (e Exit) String() string {
	switch {
	case e.Err != nil:
		return "could not start: " + e.Err.Error()
	case e.Signal != "":
		return "killed by " + e.Signal
	case e.Missing != "":
		return fmt.Sprintf("exit status %d: %s", e.Code, e.Missing)
	case e.Daemonized:
		return "exit status 0 (its child processes are still running: run it in the foreground, not as a daemon)"
	case e.Code == 126:
		return "exit status 126 (the command cannot be executed)"
	case e.Code == 127:
		return "exit status 127 (command not found)"
	default:
		return fmt.Sprintf("exit status %d", e.Code)
	}
}

func (e Exit) succeeded() bool { return e.Code == 0 && e.Signal == "" && e.Err == nil }

// A shell exits with 126 for a command that it cannot execute, and with 127 for a missing one.
func (e Exit) notRunnable() bool {
	return e.Code == 126 || e.Code == 127 || e.Missing != ""
}

// exitOf ignores err if state is set: the process has exited, but another program may have kept the output open.
func exitOf(state *os.ProcessState, err error) Exit {
	e := Exit{Code: -1}
	if state == nil {
		e.Err = fmt.Errorf("waiting for the process: %w", err)
		return e
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = cmp.Or(unix.SignalName(status.Signal()), fmt.Sprintf("signal %d", status.Signal()))
		return e
	}
	e.Code = state.ExitCode()
	return e
}

// FailedError reports that a process failed too often or that its command cannot be run.
type FailedError struct {
	Process  string
	Failures int
	Window   time.Duration
	Last     Exit
	// RetryAfter 0 means that there are no further attempts.
	RetryAfter time.Duration
}

// Error includes the number of failures and the last exit.
func (e *FailedError) Error() string {
	prospect := "is not restarted"
	if e.RetryAfter > 0 {
		prospect = "is retried every " + e.RetryAfter.String()
	}
	if e.Failures == 1 {
		return fmt.Sprintf("%s failed and %s: %s", e.Process, prospect, e.Last)
	}
	return fmt.Sprintf("%s failed %d times in %s and %s; last: %s after %s",
		e.Process, e.Failures, e.Window, prospect, e.Last, e.Last.Ran.Round(time.Millisecond))
}

// Unwrap returns the error of the last start, or nil.
func (e *FailedError) Unwrap() error { return e.Last.Err }
