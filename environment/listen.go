package environment

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tendril/aws"
	"tendril/broker"
	"tendril/console"
	"tendril/supervisor"
	"tendril/worker"
)

// The listeners turn what the parts report into lines and into what the
// console remembers.

func (e *Environment) workerEvents(name, target string) *worker.Events {
	r := e.report
	return &worker.Events{
		Settled: func(s worker.Settled) {
			e.remember(name, s)
			r.settled(name, target, s)
		},
		GateChanged: e.gateVoice(name),
		PollFailed: func(p worker.PollFailed) {
			level := slog.LevelWarn
			if p.ForGood {
				level = slog.LevelError
			}
			r.note(level, "worker", fmt.Sprintf("receiving from %s failed: %v; next try in %s", name, p.Err, short(p.RetryIn)),
				slog.String("queue", name), slog.Int("failures", p.Failures))
		},
		DeleteFailed: func(d worker.DeleteFailed) {
			if d.Final {
				r.note(slog.LevelError, "worker", fmt.Sprintf("message %s is done but could not be deleted, so it may be attempted again: %v", d.ID, d.Err),
					slog.String("queue", name), slog.String("message_id", d.ID))
			}
		},
		ChangeFailed: func(c worker.ChangeFailed) {
			r.note(slog.LevelWarn, "worker", fmt.Sprintf("message %s: changing its visibility (%s) failed: %v", c.ID, c.Kind, c.Err),
				slog.String("queue", name), slog.String("message_id", c.ID))
		},
		Lapsed: func(l worker.Lapsed) {
			if l.InWork {
				r.note(slog.LevelWarn, "worker", fmt.Sprintf("message %s: its visibility ran out while the app works on it; another attempt may begin", l.ID),
					slog.String("queue", name), slog.String("message_id", l.ID))
			}
		},
		Expired: func(x worker.Expired) {
			r.note(slog.LevelWarn, "worker", fmt.Sprintf("message %s is past its retention period and was deleted: first received %s, %d receives", x.ID,
				x.FirstReceivedAt.UTC().Format(time.RFC3339), x.ReceiveCount), slog.String("queue", name), slog.String("message_id", x.ID), slog.String("outcome", "expired"))
		},
		Stalled: func(s worker.Stalled) {
			r.note(slog.LevelWarn, "worker", fmt.Sprintf("this process stood still for %s; messages whose visibility ran out meanwhile may be attempted twice", short(s.For)))
		},
		Duplicate: func(d worker.Duplicate) {
			r.note(slog.LevelDebug, "worker", fmt.Sprintf("message %s came again while it was %s; not posted twice", d.ID, d.Stage), slog.String("message_id", d.ID))
		},
		GivenBack: func(g worker.GivenBack) {
			r.note(slog.LevelDebug, "worker", fmt.Sprintf("%d messages given back unposted", g.Messages), slog.String("queue", name))
		},
	}
}

// gateVoice says why nothing is received, and when that is over. Of several
// reasons the nearest one is said, once; the status shows them all.
func (e *Environment) gateVoice(name string) func(worker.GateChanged) {
	var mu sync.Mutex
	said := ""
	return func(g worker.GateChanged) {
		mu.Lock()
		defer mu.Unlock()
		if g.Open {
			said = ""
			e.report.note(slog.LevelInfo, "worker", "receiving from "+name, slog.String("queue", name))
			return
		}
		reason := g.Reasons[0]
		if reason.Text == said || reason.Block == worker.Draining {
			return
		}
		said = reason.Text
		level := slog.LevelInfo
		if reason.Block == worker.DeleteRefused || reason.Block == worker.AppDown {
			level = slog.LevelWarn
		}
		e.report.note(level, "worker", "not receiving: "+reason.Text, slog.String("queue", name), slog.String("reason", string(reason.Block)))
	}
}

// remember keeps a delivery for the console and for those who wait for it.
func (e *Environment) remember(name string, s worker.Settled) {
	e.shown.Record(console.Delivery{
		MessageID: s.ID, Queue: name, Outcome: s.Outcome.String(), Status: s.Status, Reason: s.Reason,
		Attempt: s.Attempt, ReceiveCount: s.ReceiveCount, DurationMS: s.Duration.Milliseconds(), WaitMS: s.Wait.Milliseconds(),
		At: time.Now(), RetryAt: s.NextRetry,
	})
}

func (e *Environment) brokerEvents() *broker.Events {
	r := e.report
	return &broker.Events{
		DeadLettered: func(from, to string, ids []string) {
			for _, id := range ids {
				r.note(slog.LevelWarn, "broker", fmt.Sprintf("message %s was received too often and went to %s", id, to),
					slog.String("queue", from), slog.String("message_id", id), slog.String("outcome", "dead-lettered"))
			}
		},
		Expired: func(name string, n int) {
			r.note(slog.LevelWarn, "broker", fmt.Sprintf("%d messages of %s passed its retention period and are gone", n, name),
				slog.String("queue", name), slog.String("outcome", "expired"))
		},
	}
}

func (e *Environment) appEvents() supervisor.Events {
	r := e.report
	return supervisor.Events{
		Started: func(s supervisor.Started) {
			r.note(slog.LevelDebug, s.Process, fmt.Sprintf("%s started as process %d", s.Process, s.PID), slog.Int("pid", s.PID))
		},
		Ready: func(s supervisor.Ready) {
			r.note(slog.LevelInfo, s.Process, fmt.Sprintf("%s is ready after %s", s.Process, short(s.After)))
		},
		ReadyLate: func(s supervisor.ReadyLate) {
			r.note(slog.LevelWarn, s.Process, fmt.Sprintf("%s is not ready after %s: %s", s.Process, short(s.After), s.Reason))
		},
		NotReady: func(s supervisor.NotReady) {
			r.note(slog.LevelDebug, s.Process, fmt.Sprintf("%s is not ready: %s", s.Process, s.Reason))
		},
		Exited: func(s supervisor.Exited) {
			level := slog.LevelWarn
			if e.stopping() {
				level = slog.LevelDebug
			}
			r.note(level, s.Process, fmt.Sprintf("%s ended: %s", s.Process, s.Exit), slog.Int("pid", s.PID))
		},
		Restarting: func(s supervisor.Restarting) {
			r.note(slog.LevelWarn, s.Process, fmt.Sprintf("%s starts again in %s (failure %d, at most %d restarts in the window)", s.Process, short(s.Delay), s.Failures, s.Limit))
		},
		GaveUp: func(s supervisor.GaveUp) {
			e.fail(fmt.Errorf("%w: %w", ErrAppFailed, s.Err))
		},
		Killed: func(s supervisor.Killed) {
			r.note(slog.LevelWarn, s.Process, fmt.Sprintf("%s was killed: %s", s.Process, s.Reason), slog.Int("pid", s.PID))
		},
		LinesDropped: func(s supervisor.LinesDropped) {
			r.note(slog.LevelWarn, s.Process, fmt.Sprintf("%d lines of the output of %s were dropped: it writes faster than they can be passed on", s.Lines, s.Process))
		},
		Gate: func(g supervisor.Gate) { e.appGate(g) },
	}
}

func (e *Environment) awsEvents() *aws.Events {
	r := e.report
	return &aws.Events{
		Corrupted: func(c aws.Corruption) {
			r.note(slog.LevelError, "aws", c.String(), slog.String("queue", c.Queue), slog.String("message_id", c.MessageID))
		},
		ClockAdjusted: func(offset time.Duration) {
			r.note(slog.LevelWarn, "aws", fmt.Sprintf("the clock of this machine is off by %s; signatures allow for it, but set the clock", short(offset)))
		},
	}
}

// stopping reports whether a stop has begun.
func (e *Environment) stopping() bool {
	select {
	case <-e.draining:
		return true
	default:
		return false
	}
}
