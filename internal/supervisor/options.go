package supervisor

import (
	"context"
	"fmt"
	"time"
)

// Options configure a [Supervisor]. The zero value and nil use the defaults.
type Options struct {
	// Grace is the time between TERM and KILL; 0 means 10 s.
	Grace time.Duration
	// Hurry, when done, makes every stop send KILL at once; may be nil.
	Hurry context.Context

	// RestartMin and RestartMax limit the pause before a restart, which doubles with every failure; 0 means 500 ms
	// and 30 s.
	RestartMin, RestartMax time.Duration
	// RestartLimit is the maximum number of restarts in RestartWindow. 0 means 10; a negative value disables
	// restarts.
	RestartLimit int
	// RestartWindow is the period in which failures count; 0 means 300 s.
	RestartWindow time.Duration
	// Excused reports whether an exit is not the process's own fault, such as a message that crashes its consumers.
	// The exit does not count, and the process is restarted after RestartMin. Excused must return soon and must not
	// call blocking methods; may be nil.
	Excused func(process string, e Exit) bool
	// RetryAfter is the interval of attempts to revive a process that was given up. The process has recovered once it
	// has run for RestartWindow. 0 disables attempts.
	RetryAfter time.Duration

	// ReadyInterval is the interval of checks of a process that is not ready; 0 means 100 ms. Ten seconds after the
	// start it becomes 1 s, if that is longer.
	ReadyInterval time.Duration
	// HealthInterval is the interval of checks of a ready process; 0 means 5 s. Two failed checks in a row, 1 s
	// apart, make it not ready.
	HealthInterval time.Duration
	// ReadyLateAfter is the time before [Events.ReadyLate] reports a process that is not ready; the interval doubles
	// after each report. 0 means 30 s.
	ReadyLateAfter time.Duration

	// Output receives every line without its line break and with control characters escaped; stream is "stdout" or
	// "stderr". It is called by one goroutine at a time and must not keep line. If it blocks, lines are dropped and
	// counted. nil discards output.
	Output func(process, stream string, line []byte)
	// MaxLine is in bytes. The rest of a longer line is replaced by its length. 0 means 16 KiB.
	MaxLine int
	// LinesPerSecond is averaged over five seconds; other lines are dropped and counted. 0 means 1000.
	LinesPerSecond int

	Events Events
}

func (o *Options) withDefaults() (Options, error) {
	var set Options
	if o != nil {
		set = *o
	}

	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Grace", &set.Grace, 10 * time.Second},
		{"RestartMin", &set.RestartMin, 500 * time.Millisecond},
		{"RestartMax", &set.RestartMax, 30 * time.Second},
		{"RestartWindow", &set.RestartWindow, 300 * time.Second},
		{"ReadyInterval", &set.ReadyInterval, 100 * time.Millisecond},
		{"HealthInterval", &set.HealthInterval, 5 * time.Second},
		{"ReadyLateAfter", &set.ReadyLateAfter, 30 * time.Second},
		{"RetryAfter", &set.RetryAfter, 0},
	} {
		if *d.value < 0 {
			return set, fmt.Errorf("%s is %s: it cannot be negative; 0 means %s", d.name, *d.value, d.zero)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}

	for _, n := range []struct {
		name  string
		value *int
		zero  int
	}{{"MaxLine", &set.MaxLine, 16 << 10}, {"LinesPerSecond", &set.LinesPerSecond, 1000}} {
		if *n.value < 0 {
			return set, fmt.Errorf("%s is %d: it cannot be negative; 0 means %d", n.name, *n.value, n.zero)
		}
		if *n.value == 0 {
			*n.value = n.zero
		}
	}

	if set.RestartMin > set.RestartMax {
		return set, fmt.Errorf("RestartMin %s is longer than RestartMax %s: make it the same or shorter", set.RestartMin,
			set.RestartMax)
	}

	if set.Hurry == nil {
		set.Hurry = context.Background()
	}
	if set.RestartLimit == 0 {
		set.RestartLimit = 10
	}
	set.RestartLimit = max(set.RestartLimit, 0)
	return set, nil
}

// Events are callbacks, which may be nil. They are called in order for each process, and concurrently for different
// ones. They must return soon and must not call Start, Stop or Restart.
type Events struct {
	// Started: a process runs, but may not be ready.
	Started func(Started)
	// Ready: a process passed its check.
	Ready func(Ready)
	// ReadyLate: a process is still not ready; checks continue.
	ReadyLate func(ReadyLate)
	// NotReady: a ready process failed its checks, exited, or is being stopped.
	NotReady func(NotReady)
	// Ended: a process exited, but its descendants may still run. Exited follows when they are gone, at the latest
	// after the grace period.
	Ended func(Ended)
	// Exited: a process exited, or could not be started.
	Exited func(Exited)
	// Restarting: a process failed and will be restarted.
	Restarting func(Restarting)
	// GaveUp: a process failed too often and is down; reported once until it recovers.
	GaveUp func(GaveUp)
	// Killed: a process and its descendants got KILL because they did not exit in time.
	Killed func(Killed)
	// LinesDropped: output was lost; reported at most once per second and process.
	LinesDropped func(LinesDropped)
	// Gate: the app became able or unable to take work. Initially it cannot. Calls are in order and one at a time
	// across all processes.
	Gate func(Gate)
}

// Started reports that a process runs.
type Started struct {
	Process string
	PID     int
}

// Ready reports that a process passed its check.
type Ready struct {
	Process string
	// After is the time since the process was started or was last ready.
	After time.Duration
}

// ReadyLate reports that a process is still not ready.
type ReadyLate struct {
	Process string
	// After is the time since the process was started or was last ready.
	After time.Duration
	// Reason is the error of the last check.
	Reason string
}

// NotReady reports that a process is no longer ready.
type NotReady struct {
	Process, Reason string
}

// Ended reports that a process exited. Its exit status follows in [Exited].
type Ended struct {
	Process string
	PID     int
}

// Exited reports the exit of a process.
type Exited struct {
	Process string
	// PID is 0 if the process could not be started.
	PID  int
	Exit Exit
	// Restart is true if the process exited because of [Supervisor.Restart].
	Restart bool
}

// Restarting reports that a failed process will be restarted.
type Restarting struct {
	Process string
	// Delay is the pause before the start.
	Delay time.Duration
	// Failures counts those in the restart window, including this one. Limit is the maximum number of restarts in it.
	Failures, Limit int
	// Excused is true if the exit does not count; see [Options.Excused]. OnTrial is true for an attempt to revive the
	// process; see [Options.RetryAfter].
	Excused, OnTrial bool
}

// GaveUp reports that a process is down.
type GaveUp struct {
	Process string
	Err     *FailedError
}

// Killed reports that the rest of a process and its descendants got KILL.
type Killed struct {
	Process string
	PID     int
	// Reason is the expired grace period, or a stop that could not wait.
	Reason string
}

// LinesDropped reports lost output.
type LinesDropped struct {
	// Stream is "stdout" or "stderr".
	Process, Stream string
	// Lines counts lost lines since the last report, and Total counts the lost lines of all streams since the start.
	Lines, Total int64
}

// Gate reports whether the app can take work: every process with a check is ready.
type Gate struct {
	Open bool
	// Reason explains why it is closed ("web exited: exit status 1"); "" if open.
	Reason string
}
