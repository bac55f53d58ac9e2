package supervisor

import "time"

// Events are what a supervisor tells. Each func may be nil. Those of one
// process come in order and one at a time; those of two processes may come at
// once. A func must return soon and must not call Start, Stop or Run.
type Events struct {
	// Started: a process runs; it need not be ready.
	Started func(Started)
	// Ready: a process passed its check.
	Ready func(Ready)
	// ReadyLate: a process is still not ready; it goes on being waited for.
	ReadyLate func(ReadyLate)
	// NotReady: a ready process failed its checks, ended, or is being stopped.
	NotReady func(NotReady)
	// Ended: a process has ended, and what it started may not have yet; Exited
	// follows when that is gone too, which may take the grace.
	Ended func(Ended)
	// Exited: a process ended, or could not be started.
	Exited func(Exited)
	// Restarting: a process failed and will be started again.
	Restarting func(Restarting)
	// GaveUp: a process failed too often and stays down, or with
	// [Options.KeepTrying] is down for now; told once until it has recovered.
	GaveUp func(GaveUp)
	// Stopping: a process and all that it started got TERM, because the
	// supervisor stops or a restart was asked for.
	Stopping func(Stopping)
	// Killed: a process and all that it started got KILL because it did not end
	// in time.
	Killed func(Killed)
	// LinesDropped: output was lost; told at most once a second per process.
	LinesDropped func(LinesDropped)
	// Gate: the answer to "may the app be given work?" changed. It begins
	// closed. Calls come in order, one at a time, whatever process caused them.
	Gate func(Gate)
}

// Started says that a process runs.
type Started struct {
	Process string
	PID     int
}

// Ready says that a process passed its check.
type Ready struct {
	Process string
	// After is the time since the process was started, or since it was last
	// ready.
	After time.Duration
}

// ReadyLate says that a process is still not ready.
type ReadyLate struct {
	Process string
	// After is the time since the process was started, or since it was last
	// ready.
	After time.Duration
	// Reason is what the last check met.
	Reason string
}

// NotReady says that a process is no longer ready.
type NotReady struct {
	Process, Reason string
}

// Ended says that a process has ended. How is not known before [Exited].
type Ended struct {
	Process string
	PID     int
}

// Exited says how a process ended.
type Exited struct {
	Process string
	// PID is 0 when the process could not be started.
	PID  int
	Exit Exit
}

// Restarting says that a failed process will be started again.
type Restarting struct {
	Process string
	// Delay is the pause before the start.
	Delay time.Duration
	// Failures is how often the process failed in the restart window, this time
	// included; Limit is how many restarts the window may hold.
	Failures, Limit int
	// Excused: the end did not count; see [Options.Excused]. Requested: it is a
	// [Supervisor.Restart].
	Excused, Requested bool
	// OnTrial: the process was given up, and this is a single try; see
	// [Options.RetryAfter].
	OnTrial bool
}

// GaveUp says that a process stays down.
type GaveUp struct {
	Process string
	// Err is also what [Supervisor.Err] answers, unless the process is tried
	// again.
	Err *FailedError
}

// Stopping says that a process was asked to end.
type Stopping struct {
	Process string
	PID     int
	// Grace is how long it may take.
	Grace time.Duration
}

// Killed says that what was left of a process and of what it started got KILL.
type Killed struct {
	Process string
	PID     int
	// Reason says why: the grace was over, or the stop could not wait.
	Reason string
}

// LinesDropped says that output was lost.
type LinesDropped struct {
	Process string
	// Lines were lost since the last report; Total since the supervisor started.
	Lines, Total int64
}

// Gate says whether the app may be given work: every process that has a check
// is ready.
type Gate struct {
	Open bool
	// Reason says why it is closed ("web exited: exit status 1"); "" when open.
	Reason string
}
