package environment

import (
	"fmt"
	"log/slog"
	"time"

	"tendril/broker"
	"tendril/console"
	"tendril/logging"
	"tendril/supervisor"
	"tendril/worker"
)

// The listeners turn what the parts report into lines and into what the
// console remembers.

// workerEvents are the listeners of a queue's worker: the log, health and the console.
func (e *Environment) workerEvents(l *line) *worker.Events {
	name := l.queue.name
	logged := e.Logger.Worker(name, l.target)
	events := *logged
	events.Received = func(worker.Received) { e.monitor.PollAnswered(name) }
	events.Settled = func(s worker.Settled) {
		next := e.afterFailure(l, &s)
		e.remember(name, s, next)
		if class, counts := deliveryClass(&s, l.settings().ToFunction()); counts {
			e.monitor.Delivered(class, s.Duration)
		}
		e.Logger.Settled(name, l.goesTo(), &s, next)
	}
	events.GateChanged = func(g worker.GateChanged) {
		e.monitor.JudgeSoon()
		logged.GateChanged(g)
	}
	events.PollFailed = func(p worker.PollFailed) {
		e.monitor.PollFailed(name, p.Err, p.Permanent)
		logged.PollFailed(p)
	}
	events.Expired = func(x worker.Expired) {
		e.monitor.Expired(1)
		logged.Expired(x)
	}
	return &events
}

// remember keeps a delivery for the console and for those who wait for it.
func (e *Environment) remember(name string, s worker.Settled, next logging.Redelivery) {
	d := console.Delivery{
		MessageID: s.ID, Queue: name, Outcome: s.Outcome.String(), Status: s.Status, Reason: s.Reason, Answer: s.Answer,
		Attempt: s.Attempt, ReceiveCount: s.ReceiveCount, DurationMS: s.Duration.Milliseconds(),
		WaitMS: s.Wait.Milliseconds(),
		At:     time.Now(), RetryAt: s.NextRetry,
	}
	if next.DeadLetterQueue != "" {
		d.RetryAt, d.DeadLetterQueue = time.Time{}, next.DeadLetterQueue
	}
	if e.s.Quiet {
		d.Answer = ""
	}
	e.shown.Record(d)
}

// brokerEvents are the listeners of the embedded queues.
func (e *Environment) brokerEvents() *broker.Events {
	logged, counts := e.Logger.Broker(), e.telemetry.Broker()
	return &broker.Events{
		DeadLettered: func(from, to string, ids []string) {
			counts.DeadLettered(from, to, ids)
			for _, id := range ids {
				e.finder.Forget(id)
			}
			logged.DeadLettered(from, to, ids)
		},
		Expired: func(name string, n int) {
			counts.Expired(name, n)
			e.monitor.Expired(int64(n))
			logged.Expired(name, n)
		},
	}
}

// appEvents are the listeners of a copy of the app, or of its helpers for nil.
func (e *Environment) appEvents(c *appCopy) supervisor.Events {
	r, counts := e.report, e.telemetry.Supervisor()
	return supervisor.Events{
		Started: func(s supervisor.Started) {
			if c != nil {
				e.pid.started(c, s.PID)
			}
			level := slog.LevelDebug
			if c == nil {
				level = slog.LevelInfo // nothing says whether it is ready
			}
			r.note(level, s.Process, fmt.Sprintf("%s started as process %d", s.Process, s.PID), slog.Int("pid", s.PID))
		},
		Ready: func(s supervisor.Ready) {
			if c != nil {
				r.note(slog.LevelInfo, s.Process, fmt.Sprintf("%s is ready after %s", s.Process, short(s.After)))
			}
		},
		ReadyLate: func(s supervisor.ReadyLate) {
			r.note(slog.LevelWarn, s.Process, fmt.Sprintf("%s is not ready after %s: %s", s.Process, short(s.After), s.Reason))
		},
		NotReady: func(s supervisor.NotReady) {
			r.note(slog.LevelDebug, s.Process, fmt.Sprintf("%s is not ready: %s", s.Process, s.Reason))
		},
		Ended: func(supervisor.Ended) {
			if c != nil && c.hadMessages() {
				c.exited(supervisor.Exit{}, time.Now())
			}
		},
		Exited: func(s supervisor.Exited) {
			counts.Exited(s)
			if c != nil {
				e.pid.ended(c)
				if !c.hadMessages() {
					c.exited(s.Exit, time.Now())
				}
			}
			level := slog.LevelWarn
			if e.stopping() || c != nil && c.isStopping() {
				level = slog.LevelDebug
			}
			r.note(level, s.Process, fmt.Sprintf("%s ended: %s", s.Process, s.Exit), slog.Int("pid", s.PID))
		},
		Restarting: func(s supervisor.Restarting) {
			counts.Restarting(s)
			if s.OnTrial {
				return // it was told with the end of the restarts
			}
			if s.Excused || s.Requested {
				r.note(slog.LevelInfo, s.Process, fmt.Sprintf("%s starts again in %s", s.Process, short(s.Delay)))
				return
			}
			r.note(slog.LevelWarn, s.Process,
				fmt.Sprintf("%s starts again in %s (failure %d, at most %d restarts in the window)", s.Process, short(s.Delay),
					s.Failures, s.Limit))
		},
		GaveUp: func(s supervisor.GaveUp) {
			counts.GaveUp(s)
			e.gaveUp(c, s)
		},
		Killed: func(s supervisor.Killed) {
			r.note(slog.LevelWarn, s.Process, fmt.Sprintf("%s was killed: %s", s.Process, s.Reason), slog.Int("pid", s.PID))
		},
		LinesDropped: e.linesDropped,
		Gate: func(g supervisor.Gate) {
			if c != nil {
				if g.Open {
					c.wasReady()
				}
				c.member.SetReady(g.Open, g.Reason)
			}
		},
	}
}

// linesDropped tells of output that was lost, of the app or of a function.
func (e *Environment) linesDropped(d supervisor.LinesDropped) {
	e.telemetry.Supervisor().LinesDropped(d)
	e.report.note(slog.LevelWarn, d.Process,
		fmt.Sprintf("%d lines of the output of %s were dropped: it writes faster than they can be passed on", d.Lines,
			d.Process))
}

// hadMessages reports whether messages may have been in work on the copy, which must
// be ready for that once. Their deliveries wait for its end no longer than a moment,
// and must not wait until all that the app started is gone; while for a copy that never
// was ready it counts how it ended, which is known only then.
func (c *appCopy) hadMessages() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// gaveUp ends an environment whose app never came up. One that worked before is
// kept up: nothing is received, and the status says why. A version that is being
// deployed is rolled back by whoever deploys it.
func (e *Environment) gaveUp(c *appCopy, s supervisor.GaveUp) {
	deployed := c != nil && e.app != nil && c.version > max(e.app.Version().number, e.firstVersion)
	last := *s.Err
	ends := e.app == nil || !e.wasReady() && !deployed
	if ends || deployed {
		last.KeptTrying, last.RetryAfter = false, 0 // the environment, or the deployment, ends with it
	}
	if c != nil {
		c.gaveUp(&last)
	}
	switch {
	case ends:
		e.fail(fmt.Errorf("%w: %w", ErrAppFailed, &last))
	case c != nil && !deployed:
		e.report.note(slog.LevelError, s.Process, last.Error()+"; 'tendril deploy' replaces it")
	default:
		e.report.note(slog.LevelError, s.Process, last.Error())
	}
}
