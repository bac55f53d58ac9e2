package autoscale

import (
	"context"
	"log/slog"
	"time"
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
	Protected func(Protected)
	// Terminating: this instance was chosen for termination and starts to drain.
	Terminating func(Terminating)
	// Terminated: the drain has ended, and the lifecycle hook is completed.
	Terminated func(Terminated)
}

// LogEvents returns listeners that write to log. scaled names what is scaled, such as
// "replicas".
func LogEvents(log *slog.Logger, scaled string) Events {
	log = log.With("scaled", scaled)
	return Events{
		Decided: func(d Decided) {
			log := log.With("from", d.From, "desired", d.Desired, "rule", string(d.Rule), "reason", d.Why)
			switch {
			case d.Applied:
				log.Info("size changed")
			case d.Changes():
				log.Debug("size not changed", "err", d.NotApplied)
			default:
				log.Debug("size kept")
			}
		},
		Failed: func(f Failed) {
			level := slog.LevelDebug
			if f.Consecutive == 1 {
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, "scaling call failed", "call", f.Doing, "failures", f.Consecutive, "err", f.Err)
		},
		Protected: func(p Protected) {
			if p.On {
				log.Debug("scale-in protection set")
			} else {
				log.Debug("scale-in protection removed")
			}
		},
		Terminating: func(Terminating) { log.Info("instance is being terminated by its group: draining") },
		Terminated: func(d Terminated) {
			if d.Err != nil {
				log.Warn("termination of the instance goes on after a failed drain", "err", d.Err)
				return
			}
			log.Info("instance drained: its group may terminate it")
		},
	}
}

// Decided is one decision.
type Decided struct {
	Decision
	// Applied is true when the target was set; false also when nothing changes.
	Applied bool
	// NotApplied says why a change was not applied; "" when it was, or when nothing
	// changes.
	NotApplied string
}

// Failed is one call that failed.
type Failed struct {
	// Doing names the call, as in "reading the size".
	Doing string
	Err   error
	// Consecutive counts the consecutive failures of that call, from 1.
	Consecutive int
}

// Protected is a change of scale-in protection.
type Protected struct {
	On bool
}

// Terminating is the start of a drain before termination.
type Terminating struct{}

// Terminated is the end of a drain before termination. Err is not nil when the drain
// failed, or when the hook could not be completed: the group then terminates the
// instance after the hook's timeout.
type Terminated struct {
	Err error
}

// callTimeout is the default limit of one call.
const callTimeout = 10 * time.Second

func durationOr(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}

func call[E any](listener func(E), event E) {
	if listener != nil {
		listener(event)
	}
}
