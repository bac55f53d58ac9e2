package autoscale

import (
	"context"
	"log/slog"
	"time"

	"tendril/internal/observe/event"
)

// Events are listeners; each may be nil. They must not block. Each loop, protector, termination and reporter calls its
// listeners one at a time.
type Events struct {
	// Decided is called for each decision that does not repeat the previous one.
	Decided   func(Decided)
	Failed    func(Failed)
	Protected func(on bool)
	// Terminating is called when this instance starts to drain for its termination.
	Terminating func()
	// Terminated is called after the drain and the lifecycle action, with the errors of both. If the action failed, the
	// group terminates the instance when the hook times out.
	Terminated func(err error)
}

// LogEvents returns listeners that write to log. scaled names the scaled things, such as "replicas of the app".
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
			case made.ScaleInHeld():
				log.Warn("scale-in held", "hint", "lower the desired size yourself, or scale by BacklogPerProcess")
			default:
				log.Debug("size stays")
			}
		},
		Failed: func(f Failed) {
			level := slog.LevelDebug
			if f.Consecutive == 1 {
				level = slog.LevelWarn
			}
			event.Scaling.Log(log, level, "scaling call failed", "call", f.Doing, "failures", f.Consecutive, "err", f.Err)
		},
		Protected: func(on bool) { log.Debug("scale-in protection changed", "on", on) },
		Terminating: func() {
			event.Scaling.Log(log, slog.LevelInfo, "instance is being terminated by its group, draining")
		},
		Terminated: func(err error) {
			if err != nil {
				log.Warn("instance not drained, or its lifecycle action not completed", "err", err)
				return
			}
			log.Info("instance drained, its group may terminate it")
		},
	}
}

// Decided is a decision and its outcome.
type Decided struct {
	Decision Decision

	Applied    bool
	NotApplied string
}

func (d Decided) repeats(other Decided) bool {
	return d.Decision.Rule == other.Decision.Rule && d.Decision.From == other.Decision.From &&
		d.Decision.Desired == other.Decision.Desired && d.Applied == other.Applied && d.NotApplied == other.NotApplied
}

// Failed describes a failed call.
type Failed struct {
	// Doing describes the call, such as "reading the size".
	Doing string
	Err   error
	// Consecutive counts the call's failures in a row, including this one.
	Consecutive int
}

func notify[E any](listener func(E), event E) {
	if listener != nil {
		listener(event)
	}
}

type caller struct {
	timeout  time.Duration
	failed   func(Failed)
	failures map[string]int
}

func newCaller(failed func(Failed)) caller {
	return caller{10 * time.Second, failed, map[string]int{}}
}

func (c *caller) do(ctx context.Context, doing string, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	err := f(limited)
	if err == nil {
		delete(c.failures, doing)
		return nil
	}
	if ctx.Err() == nil {
		c.failures[doing]++
		notify(c.failed, Failed{Doing: doing, Err: err, Consecutive: c.failures[doing]})
	}
	return err
}

func every(ctx context.Context, interval time.Duration, f func() bool) {
	ticker := time.Tick(interval)
	for f() {
		select {
		case <-ctx.Done():
			return
		case <-ticker:
		}
	}
}
