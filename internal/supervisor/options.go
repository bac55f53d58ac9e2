package supervisor

import (
	"cmp"
	"context"
	"time"
)

// Options configure a [Supervisor]. The zero value and nil mean the defaults.
type Options struct {
	// Grace is the time between SIGTERM and SIGKILL; 0 means 10 s.
	Grace time.Duration
	// Once Hurry is done, every stop sends SIGKILL immediately; may be nil.
	Hurry context.Context

	// RestartMin and RestartMax limit the restart delay, which doubles after each failure; 0 means 500 ms and 30 s.
	RestartMin, RestartMax time.Duration
	// RestartLimit is the maximum number of restarts in RestartWindow. 0 means 10; a negative value disables
	// restarts.
	RestartLimit int
	// RestartWindow is the period in which failures count; 0 means 300 s.
	RestartWindow time.Duration
	// Excused reports whether an exit had another cause, such as a message that crashes its consumers. Such an exit
	// does not count, and the delay is RestartMin. Excused must return quickly; may be nil.
	Excused func(process string, e Exit) bool
	// RetryAfter is the interval between attempts to revive a failed process; 0 means no attempts. A process has
	// recovered after running for RestartWindow.
	RetryAfter time.Duration

	// ReadyInterval is the interval between checks of an unready process; 0 means 100 ms. It is at least 1 s once no
	// check has passed for ten seconds.
	ReadyInterval time.Duration
	// HealthInterval is the interval between checks of a ready process; 0 means 5 s. Two failures in a row, at
	// most 1 s apart, make it unready.
	HealthInterval time.Duration
	// ReadyLateAfter is the time before the first [Events.ReadyLate], and doubles after each; 0 means 30 s.
	ReadyLateAfter time.Duration

	// Output receives each line of output, without its line break and with control characters escaped; stream is
	// "stdout" or "stderr". Calls are serialized; Output must not retain line. Lines are dropped while Output blocks.
	// Nil discards all output.
	Output func(process, stream string, line []byte)
	// MaxLine limits a line's bytes; 0 means 16 KiB. The rest of a longer line is replaced with its length.
	MaxLine int
	// LinesPerSecond limits each process's lines, with bursts of five times as many; 0 means 1000. Excess lines are
	// dropped.
	LinesPerSecond int

	Events Events
}

// withDefaults does not check values, because package config does.
func (o *Options) withDefaults() Options {
	var set Options
	if o != nil {
		set = *o
	}
	set.Grace = cmp.Or(set.Grace, 10*time.Second)
	set.RestartMin = cmp.Or(set.RestartMin, 500*time.Millisecond)
	set.RestartMax = cmp.Or(set.RestartMax, 30*time.Second)
	set.RestartWindow = cmp.Or(set.RestartWindow, 300*time.Second)
	set.RestartLimit = max(cmp.Or(set.RestartLimit, 10), 0)
	set.ReadyInterval = cmp.Or(set.ReadyInterval, 100*time.Millisecond)
	set.HealthInterval = cmp.Or(set.HealthInterval, 5*time.Second)
	set.ReadyLateAfter = cmp.Or(set.ReadyLateAfter, 30*time.Second)
	set.MaxLine = cmp.Or(set.MaxLine, 16<<10)
	set.LinesPerSecond = cmp.Or(set.LinesPerSecond, 1000)
	if set.Hurry == nil {
		set.Hurry = context.Background()
	}
	return set
}

// Events are callbacks; each may be nil. Except for LinesDropped, calls for one process are in order; calls for
// different processes may be concurrent. They must return quickly and not call Start, Stop or Restart.
type Events struct {
	Started    func(Started)
	Ready      func(Ready)
	ReadyLate  func(ReadyLate)
	NotReady   func(NotReady)
	Ended      func(Ended)
	Exited     func(Exited)
	Restarting func(Restarting)
	// GaveUp is called once, and again only after the process has recovered or [Supervisor.Restart] was called.
	GaveUp func(GaveUp)
	Killed func(Killed)
	// LinesDropped is called at most once per second for each stream of a process, and when the process stops.
	LinesDropped func(LinesDropped)
	// Gate is called when the app becomes able or unable to take work; initially, it is unable. Calls are serialized
	// across processes.
	Gate func(Gate)
}

// Started reports that a process has been started.
type Started struct {
	Process string
	PID     int
}

// Ready reports that a process has passed its check.
type Ready struct {
	Process string
	// After is the time since the process was started or, if later, since it was last ready.
	After time.Duration
}

// ReadyLate reports that a process is still not ready. Checks continue.
type ReadyLate struct {
	Process string
	After   time.Duration
	Reason  string
}

// NotReady reports that a ready process failed its checks, exited or is being stopped.
type NotReady struct {
	Process, Reason string
}

// Ended reports that a process has exited, although descendants may still run. [Exited] follows.
type Ended struct {
	Process string
	PID     int
}

// Exited reports that a process and all its descendants have exited, or that it could not be restarted.
type Exited struct {
	Process string
	PID     int
	Exit    Exit
	Restart bool
}

// Restarting reports that a failed process will be restarted.
type Restarting struct {
	Process string
	Delay   time.Duration
	// Failures counts the failures in the restart window, including this one unless Excused is set. Limit is the
	// maximum number of restarts.
	Failures, Limit int
	// Excused means that the exit does not count; see [Options.Excused]. OnTrial means that the restart is an attempt
	// to revive the process; see [Options.RetryAfter].
	Excused, OnTrial bool
}

// GaveUp reports that a process is down because it failed too often or its command cannot be run.
type GaveUp struct {
	Process string
	Err     *FailedError
}

// Killed reports that a process or its descendants were sent SIGKILL.
type Killed struct {
	Process string
	PID     int
	Reason  string
}

// LinesDropped reports lost output.
type LinesDropped struct {
	Process, Stream string
	// Lines counts the stream's lines dropped since its last report, Total all dropped lines of both streams.
	Lines, Total int64
	// TooFast means that lines exceeded [Options.LinesPerSecond]. Otherwise, [Options.Output] blocked.
	TooFast bool
}

// Gate reports whether the app can take work: every process with a check is ready, and no stop has begun.
type Gate struct {
	Open bool
	// Reason is text such as "web exited: exit status 1"; "" if Open.
	Reason string
}
