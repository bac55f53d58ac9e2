package supervisor

import "time"

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
	// Failed: given up, or with [Options.KeepTrying] until the next try.
	Failed State = "failed"
)

// Status is a snapshot of one process.
type Status struct {
	// Name is [Process.Name].
	Name  string
	State State
	// PID is 0 when the process does not run.
	PID int
	// Since is when State began; the zero time before the first start.
	Since time.Time
	// Restarts counts the starts after the first.
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
	// LinesDropped counts lost lines of output.
	LinesDropped int64
}
