package supervisor

import (
	"context"
	"fmt"
	"time"
)

// Options set how processes are kept. The zero value, and a nil *Options, are
// the defaults.
type Options struct {
	// Grace is how long a process may take to end after TERM before its whole
	// group gets KILL; 0 means 10 s.
	Grace time.Duration
	// Hurry ends the gentleness of every stop when it is done, also of one that undoes
	// a start that failed: what still runs gets KILL. nil leaves that to the context of
	// [Supervisor.Stop].
	Hurry context.Context

	// RestartMin and RestartMax bound the pause before a restart, which
	// doubles with every failure in RestartWindow; 0 means 500 ms and 30 s.
	RestartMin, RestartMax time.Duration
	// RestartLimit is how many restarts RestartWindow may hold; one failure
	// more and the process is given up. 0 means 10; negative means that a
	// process is never restarted.
	RestartLimit int
	// RestartWindow is the time over which failures count; 0 means 300 s.
	RestartWindow time.Duration
	// Excused reports whether the end of a process is not its own fault, such
	// as a message that kills whatever works on it. The process is started again
	// after RestartMin and the end counts for nothing. It is called between two
	// runs, must return soon, and must not call methods that wait; nil excuses
	// nothing.
	Excused func(process string, e Exit) bool
	// RetryAfter is the time between two single tries of a process that was given up
	// and is in the state [Failed], which keeps the gate closed where it has a check; one
	// that then runs for RestartWindow has recovered. 0 means that it is not tried.
	RetryAfter time.Duration

	// ReadyInterval is the time between two checks of a process that is not
	// ready; 0 means 100 ms. Ten seconds after its start it becomes 1 s, where
	// that is longer.
	ReadyInterval time.Duration
	// HealthInterval is the time between two checks of a ready process; 0 means
	// 5 s. Two failed checks in a row, 1 s apart, make it not ready.
	HealthInterval time.Duration
	// ReadyLateAfter is when a process that is still not ready is reported by
	// [Events.ReadyLate], and again after twice, four times... as long; it is
	// never killed for it. 0 means 30 s.
	ReadyLateAfter time.Duration

	// Output takes every line that a process writes, without its end of line
	// and with control characters escaped; stream is "stdout" or "stderr". It
	// is called by one goroutine at a time and must not keep line. A sink that
	// stalls costs lines, which are counted, and never stops a process. nil
	// throws output away.
	Output func(process, stream string, line []byte)
	// MaxLine is the longest line in bytes; the rest of a longer one is cut and
	// its length told in its place. 0 means 16 KiB.
	MaxLine int
	// LinesPerSecond is how many lines a process may write per second, averaged
	// over five seconds; more are dropped and counted. 0 means 1000.
	LinesPerSecond int

	// Events are called as things happen.
	Events Events
}

// withDefaults returns a copy in which no zero is left.
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
	// GaveUp: a process failed too often and is down; told once until it has recovered.
	GaveUp func(GaveUp)
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
	// Restart: it ended because [Supervisor.Restart] starts it anew.
	Restart bool
}

// Restarting says that a failed process will be started again.
type Restarting struct {
	Process string
	// Delay is the pause before the start.
	Delay time.Duration
	// Failures is how often the process failed in the restart window, this time
	// included; Limit is how many restarts the window may hold.
	Failures, Limit int
	// Excused: the end did not count; see [Options.Excused]. OnTrial: the process was given
	// up, and this is a single try; see [Options.RetryAfter].
	Excused, OnTrial bool
}

// GaveUp says that a process is down.
type GaveUp struct {
	Process string
	Err     *FailedError
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
	// Stream is where: "stdout" or "stderr".
	Process, Stream string
	// Lines of it were lost since the last report; Total of all streams since the supervisor started.
	Lines, Total int64
}

// Gate says whether the app may be given work: every process that has a check
// is ready.
type Gate struct {
	Open bool
	// Reason says why it is closed ("web exited: exit status 1"); "" when open.
	Reason string
}
