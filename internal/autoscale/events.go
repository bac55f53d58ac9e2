package autoscale

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"tendril/internal/observe/event"
)

// Events are the listeners of this package. Each may be nil. A loop calls its listeners
// in order and one at a time; a listener must return soon.
type Events struct {
	// Decided: the size changes, or it stays for another reason than before. A repeated
	// decision is reported once.
	Decided func(Decided)
	// Failed: a call failed.
	Failed func(Failed)
	// Protected: the scale-in protection of this instance was set or removed.
	Protected func(on bool)
	// Terminating: this instance was chosen for termination and starts to drain.
	Terminating func()
	// Terminated: the drain has ended, and the lifecycle hook is completed. err is not nil
	// when either failed: the group then terminates the instance after the hook's timeout.
	Terminated func(err error)
}

// LogEvents returns listeners that write to log. scaled names what is scaled, such as
// "replicas".
func LogEvents(log *slog.Logger, scaled string) Events {
	log = log.With("scaled", scaled)
	return Events{
		Decided: func(d Decided) {
			made := d.Decision
			log := log.With("from", made.From, "desired", made.Desired, "rule", string(made.Rule), "reason", made.Why)

			switch {
			case d.Applied:
				log.Info("size changed")
			case made.Changes():
				log.Debug("size not changed", "err", d.NotApplied)
			case made.HeldByOneInstance():
				log.Warn("scale-in held", "hint", "lower the desired size yourself, or scale by BacklogPerProcess")
			default:
				log.Debug("size kept")
			}
		},
		Failed: func(f Failed) {
			level := slog.LevelDebug
			if f.Consecutive == 1 {
				level = slog.LevelWarn
			}
			event.Scaling.Log(log, level, "scaling call failed", "call", f.Doing, "failures", f.Consecutive, "err", f.Err)
		},
		Protected:   func(on bool) { log.Debug("scale-in protection changed", "on", on) },
		Terminating: func() { event.Scaling.Log(log, slog.LevelInfo, "instance is being terminated by its group: draining") },
		Terminated: func(err error) {
			if err != nil {
				log.Warn("termination of the instance goes on after a failed drain", "err", err)
				return
			}
			log.Info("instance drained: its group may terminate it")
		},
	}
}

// Decided is one decision.
type Decided struct {
	Decision Decision

	// Applied is true when the target was set; false also when nothing changes.
	Applied bool
	// NotApplied says why a change was not applied; "" when it was, or when nothing
	// changes.
	NotApplied string
}

// repeats reports whether other was the same decision with the same effect.
func (d Decided) repeats(other Decided) bool {
	return d.Decision.Rule == other.Decision.Rule && d.Decision.From == other.Decision.From &&
		d.Decision.Desired == other.Decision.Desired && d.Applied == other.Applied && d.NotApplied == other.NotApplied
}

// Failed is one call that failed.
type Failed struct {
	// Doing names the call, as in "reading the size".
	Doing string
	Err   error
	// Consecutive counts the consecutive failures of that call, from 1.
	Consecutive int
}

func call[E any](listener func(E), event E) {
	if listener != nil {
		listener(event)
	}
}

// caller makes calls within a time limit, and reports how often each failed in a row.
type caller struct {
	timeout  time.Duration // 0 means 10 s
	failed   func(Failed)
	failures map[string]int
}

func newCaller(timeout time.Duration, failed func(Failed)) caller {
	return caller{timeout, failed, map[string]int{}}
}

// do makes one call. A failure is reported unless ctx has ended.
func (c *caller) do(ctx context.Context, doing string, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(c.timeout, 10*time.Second))
	defer cancel()
	err := f(limited)
	switch {
	case err == nil:
		delete(c.failures, doing)
	case ctx.Err() == nil:
		c.failures[doing]++
		call(c.failed, Failed{Doing: doing, Err: err, Consecutive: c.failures[doing]})
	}
	return err
}

// every calls f at once and then after each interval, until it returns false or ctx ends.
func every(ctx context.Context, interval time.Duration, f func() bool) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for f() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
