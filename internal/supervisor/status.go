package supervisor

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// State is where a process is in its life.
type State string

// The states of a process.
const (
	// Starting: about to run; waiting for its port where it has one.
	Starting State = "starting"
	// Running: started. [Status.Ready] says whether it passed its check.
	Running State = "running"
	// Waiting: failed, and pausing before its restart.
	Waiting State = "waiting"
	// Ending: told to stop, or it ended and others that it started have not.
	Ending State = "stopping"
	// Stopped: not running because the supervisor was stopped, or not started.
	Stopped State = "stopped"
	// Finished: ended by itself with status 0, which is no failure: see [Process.MayFinish].
	Finished State = "finished"
	// Failed: given up, until the next try where there is one.
	Failed State = "failed"
)

// Status is a snapshot of one process.
type Status struct {
	// Name is [Process.Name].
	Name  string
	State State
	// Port is [Process.Port]: where it takes requests; 0 for none.
	Port int
	// PID is 0 when the process does not run.
	PID int
	// Since is when State began; the zero time before the first start.
	Since time.Time
	// Restarts counts the starts after the first, but for those that were asked for.
	Restarts int
	// Ready says whether the process passed its check; Reason is why not, ""
	// where that is not known.
	Ready  bool
	Reason string
	// LastReady is when it last passed its check or was last known to be ready; zero
	// when it never was, or has no check.
	LastReady time.Time
	// LastExit is how the last run ended; nil when none has.
	LastExit *Exit
}

// Exit is how one run of a process ended.
type Exit struct {
	// Code is the exit status, 0 to 255; -1 when a signal ended the process or
	// it never started.
	Code int
	// Signal is the name of the signal that ended the process ("SIGKILL"), or "".
	Signal string
	// Missing says which program or file of the command does not exist; "" when that
	// is not known to be the reason.
	Missing string
	// Daemonized: it ended with status 0 soon after its start, and others that it started went on.
	Daemonized bool
	// Err is why the process could not be started; nil when it ran.
	Err error
	// At is when the end was seen; Ran is how long the process had run.
	At  time.Time
	Ran time.Duration
}

// String says it in a few words: "exit status 1", "killed by SIGSEGV".
func (e Exit) String() string {
	switch {
	case e.Err != nil:
		return "could not start: " + e.Err.Error()
	case e.Signal != "":
		return "killed by " + e.Signal
	case e.Missing != "":
		return fmt.Sprintf("exit status %d: %s", e.Code, e.Missing)
	case e.Daemonized:
		return "exit status 0 (what it started goes on: run it in the foreground, not as a daemon)"
	case e.Code == 126:
		return "exit status 126 (the command cannot be executed)"
	case e.Code == 127:
		return "exit status 127 (command not found)"
	default:
		return fmt.Sprintf("exit status %d", e.Code)
	}
}

// succeeded reports whether the process ran and ended by itself with status 0.
func (e Exit) succeeded() bool { return e.Code == 0 && e.Signal == "" && e.Err == nil }

// notRunnable reports whether the end shows that there is nothing to run: 126
// and 127 are a shell's answers for what it cannot execute and cannot find.
func (e Exit) notRunnable() bool {
	return e.Code == 126 || e.Code == 127 || e.Missing != ""
}

// exitOf translates what Wait left behind. An error beside a state is the
// state's own, or says that another program kept the output open: the process
// ended all the same.
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

// FailedError says that a process failed more often than it may, or that its
// command cannot be run at all.
type FailedError struct {
	Process string
	// Failures is how often it failed in Window.
	Failures int
	Window   time.Duration
	// Last is the last failure.
	Last Exit
	// RetryAfter is when the process is tried again; 0 is never.
	RetryAfter time.Duration
}

// Error names the process, the count and the last failure.
func (e *FailedError) Error() string {
	prospect := "is not started again"
	if e.RetryAfter > 0 {
		prospect = "is tried again every " + e.RetryAfter.String()
	}
	if e.Failures == 1 {
		return fmt.Sprintf("%s failed and %s: %s", e.Process, prospect, e.Last)
	}
	return fmt.Sprintf("%s failed %d times in %s and %s; last: %s after %s",
		e.Process, e.Failures, e.Window, prospect, e.Last, e.Last.Ran.Round(time.Millisecond))
}

// Unwrap returns why the last start failed; nil when the process ran.
func (e *FailedError) Unwrap() error { return e.Last.Err }
