package supervisor

import (
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
	// Starting: about to run, possibly waiting for its port.
	Starting State = "starting"
	// Running: started. [Status.Ready] reports whether it passed its check.
	Running State = "running"
	// Waiting: failed, and pausing before its restart.
	Waiting State = "waiting"
	// Ending: stopping, or exited with running descendants.
	Ending State = "stopping"
	// Stopped: not started, or stopped by the supervisor.
	Stopped State = "stopped"
	// Finished: exited with status 0 and [Process.MayFinish].
	Finished State = "finished"
	// Failed: given up, until the next attempt, if any.
	Failed State = "failed"
)

// Status is a snapshot of one process.
type Status struct {
	Name  string
	State State
	// Port may be 0.
	Port int
	// PID is 0 if the process is not running.
	PID int
	// Since is the start of State; may be zero.
	Since time.Time
	// Restarts counts the starts after the first, except requested ones.
	Restarts int
	// Ready reports whether the process passed its check. Reason explains why not; may be "".
	Ready  bool
	Reason string
	// LastReady may be zero.
	LastReady time.Time
	// LastExit may be nil.
	LastExit *Exit
}

// Exit describes the end of a run.
type Exit struct {
	// Code is 0 to 255; -1 if a signal ended the process or it never started.
	Code int
	// Signal is the name of the signal that ended the process ("SIGKILL"), or "".
	Signal string
	// Missing names a program or file of the command that does not exist; may be "".
	Missing string
	// Daemonized is true if the process exited with status 0 soon after its start and its descendants kept running.
	Daemonized bool
	// Err is the reason why the process could not be started; may be nil.
	Err error
	// At is the time of the exit, and Ran the duration of the run.
	At  time.Time
	Ran time.Duration
}

// String returns a short description: "exit status 1", "killed by SIGSEGV".
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

// succeeded reports whether the process exited with status 0.
func (e Exit) succeeded() bool { return e.Code == 0 && e.Signal == "" && e.Err == nil }

// A shell exits with 126 for commands that it cannot execute and 127 for those it cannot find.
func (e Exit) notRunnable() bool {
	return e.Code == 126 || e.Code == 127 || e.Missing != ""
}

// exitOf converts the result of Wait. If there is a state, the process has exited even if err is set: another program
// may have kept its output open.
func exitOf(state *os.ProcessState, err error) Exit {
	e := Exit{Code: -1}
	if state == nil {
		e.Err = fmt.Errorf("waiting for the process: %w", err)
		return e
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		e.Signal = unix.SignalName(status.Signal())
		if e.Signal == "" {
			e.Signal = fmt.Sprintf("signal %d", int(status.Signal()))
		}
		return e
	}
	e.Code = state.ExitCode()
	return e
}

// FailedError reports that a process failed too often, or that its command cannot be run.
type FailedError struct {
	Process  string
	Failures int
	Window   time.Duration
	Last     Exit
	// RetryAfter is the time until the next attempt; 0 means never.
	RetryAfter time.Duration
}

// Error returns the process, the count and the last failure.
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

// Unwrap returns the reason why the last start failed; may be nil.
func (e *FailedError) Unwrap() error { return e.Last.Err }
