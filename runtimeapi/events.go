package runtimeapi

import (
	"time"

	"tendril/supervisor"
)

// Events are what a pool tells. Each func may be nil. Those of one process come
// in order and one at a time; those of two processes may come at once. A func
// must return soon and must not call the pool.
type Events struct {
	// Started: a process runs.
	Started func(Started)
	// Ready: a process asked for its first invocation.
	Ready func(Ready)
	// InitFailed: a process ended before that, or could not be started.
	InitFailed func(InitFailed)
	// TimedOut: an invocation met its time limit, and its process was killed.
	TimedOut func(TimedOut)
	// Exited: a process ended, and its group with it; also one that could not be
	// started.
	Exited func(Exited)
	// Refused: a program that is not the function asked for its invocations. It is told
	// of the first, the tenth, the hundredth of the pool, and so on.
	Refused func(Refused)
	// LinesDropped: output was lost. Its process is "function-" and the instance.
	LinesDropped func(supervisor.LinesDropped)
}

// Started says that a process runs.
type Started struct {
	// Instance is 1 to the number of instances; a successor may have the number
	// of a process that ended.
	Instance, PID int
}

// Ready says that a process has done its initialization.
type Ready struct {
	Instance, PID int
	// After is the time since its start.
	After time.Duration
}

// InitFailed says that a process did not get as far as its first invocation.
type InitFailed struct {
	Instance int
	// Type is Lambda's name for it, or the one that the function posted
	// ("Runtime.ImportModuleError").
	Type string
	// Reason says it in a few words.
	Reason string
	// Pause is how long no process is started; it grows with Failures, the
	// number of failures since the last invocation that was answered.
	Failures int
	Pause    time.Duration
}

// TimedOut says that an invocation met its time limit.
type TimedOut struct {
	Instance  int
	RequestID string
	// Limit is the time that it had.
	Limit time.Duration
}

// Exited says how a process ended.
type Exited struct {
	// PID is 0 when the process could not be started.
	Instance, PID int
	Exit          Exit
	// Asked tells why we ended it ("stopped", "time limit"); "" when it ended by
	// itself.
	Asked string
}

// Refused says that a program was refused that the process did not start.
type Refused struct {
	Instance int
	// Client names the program, as "curl (pid 123) of user 1000".
	Client string
	// Total is how many requests the pool has refused.
	Total int
}
