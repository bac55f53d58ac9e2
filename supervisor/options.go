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
	// KeepTrying has a process that was given up stay in the state [Failed],
	// which keeps the gate closed where it has a check, instead of ending the
	// whole: [Supervisor.Failed] never closes and Run goes on. It comes back by
	// [Supervisor.Restart], and by itself with RetryAfter.
	KeepTrying bool
	// RetryAfter is the time between two single tries of a process that was
	// given up; one that then runs for RestartWindow has recovered. 0 means that
	// it is not tried. It needs KeepTrying.
	RetryAfter time.Duration

	// Reap takes in and buries orphans of the app: processes whose parent ended
	// before them. As process 1, as in a container, that is always done; set it
	// where process 1 does not do it. It needs Linux 5.4. Orphans of everything
	// that this program starts come too, and children that it waits for itself,
	// by package os, are left to it.
	Reap bool

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
	if set.RetryAfter > 0 && !set.KeepTrying {
		return set, fmt.Errorf("RetryAfter is %s without KeepTrying: set that too", set.RetryAfter)
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
