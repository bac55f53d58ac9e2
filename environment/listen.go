package environment

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tendril/aws"
	"tendril/broker"
	"tendril/console"
	"tendril/logging"
	"tendril/supervisor"
	"tendril/worker"
)

// The listeners turn what the parts report into lines and into what the
// console remembers.

func (e *Environment) workerEvents(l *line) *worker.Events {
	r, name := e.report, l.queue.name
	return &worker.Events{
		Received: func(worker.Received) { e.well.polls.answered(name) },
		Settled: func(s worker.Settled) {
			next := e.afterFailure(l, &s)
			e.remember(name, s, next)
			e.well.observe(s, l.settings().ToFunction(), time.Now())
			r.Settled(name, l.goesTo(), &s, next)
		},
		GateChanged: e.gateVoice(name),
		PollFailed: func(p worker.PollFailed) {
			e.well.polls.failed(name, p, time.Now())
			level := slog.LevelWarn
			if p.ForGood {
				level = slog.LevelError
			}
			r.note(level, "worker", fmt.Sprintf("receiving from %s failed: %v; next try in %s", name, p.Err, short(p.RetryIn)),
				slog.String("queue", name), slog.Int("failures", p.Failures))
		},
		DeleteFailed: func(d worker.DeleteFailed) {
			if d.Final {
				r.note(slog.LevelError, "worker",
					fmt.Sprintf("message %s is done but could not be deleted, so it may be attempted again: %v", d.ID, d.Err),
					slog.String("queue", name), slog.String("message_id", d.ID))
			}
		},
		ChangeFailed: func(c worker.ChangeFailed) {
			r.note(slog.LevelWarn, "worker",
				fmt.Sprintf("message %s: changing its visibility (%s) failed: %v", c.ID, c.Kind, c.Err),
				slog.String("queue", name), slog.String("message_id", c.ID))
		},
		Lapsed: func(l worker.Lapsed) {
			if l.InWork {
				r.note(slog.LevelWarn, "worker",
					fmt.Sprintf("message %s: its visibility ran out while the app works on it; another attempt may begin", l.ID),
					slog.String("queue", name), slog.String("message_id", l.ID))
			}
		},
		Expired: func(x worker.Expired) {
			e.well.expired.Add(1)
			r.note(slog.LevelWarn, "worker",
				fmt.Sprintf("message %s is past its retention period and was deleted: first received %s, %d receives", x.ID,
					x.FirstReceivedAt.UTC().Format(time.RFC3339), x.ReceiveCount), slog.String("queue", name),
				slog.String("message_id", x.ID), slog.String("outcome", "expired"))
		},
		Throttled: e.throttleVoice(name, l.target),
		Limited:   func(l worker.Limited) { e.limited(name, l) },
		Stalled: func(s worker.Stalled) {
			r.note(slog.LevelWarn, "worker",
				fmt.Sprintf("this process stood still for %s; messages whose visibility ran out meanwhile may be attempted twice",
					short(s.For)))
		},
		Duplicate: func(d worker.Duplicate) {
			r.note(slog.LevelDebug, "worker",
				fmt.Sprintf("message %s came again while it was %s; not posted twice", d.ID, d.Stage),
				slog.String("message_id", d.ID))
		},
		GivenBack: func(g worker.GivenBack) {
			r.note(slog.LevelDebug, "worker", fmt.Sprintf("%d messages given back unposted", g.Messages),
				slog.String("queue", name))
		},
	}
}

// gateVoice says why nothing is received, and when that is over. Of several
// reasons the nearest one is said, once; the status shows them all.
func (e *Environment) gateVoice(name string) func(worker.GateChanged) {
	var mu sync.Mutex
	said := ""
	return func(g worker.GateChanged) {
		e.well.judgeSoon()
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
		e.report.note(level, "worker", "not receiving from "+name+": "+reason.Text, slog.String("queue", name),
			slog.String("reason", string(reason.Block)))
	}
}

// throttledEvery is the least time between two lines about a target that takes
// nothing: each delivery that it refuses makes the pause a little longer.
const throttledEvery = 10 * time.Second

// throttleVoice says that a target takes nothing for now: when that begins, and
// every now and then as long as it lasts.
func (e *Environment) throttleVoice(name, target string) func(worker.Throttled) {
	again := logging.Interval{Every: throttledEvery}
	return func(x worker.Throttled) {
		if !again.Allow() {
			return
		}
		e.report.note(slog.LevelWarn, "worker",
			fmt.Sprintf("%s takes nothing for now (%s): nothing is received from %s for %s", target, x.Reason, name,
				short(x.For)),
			slog.String("queue", name), slog.String("target", target), slog.String("reason", x.Reason))
	}
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

func (e *Environment) brokerEvents() *broker.Events {
	r, counts := e.report, e.telemetry.Broker()
	return &broker.Events{
		DeadLettered: func(from, to string, ids []string) {
			counts.DeadLettered(from, to, ids)
			for _, id := range ids {
				e.finder.Forget(id)
				r.note(slog.LevelWarn, "broker", fmt.Sprintf("message %s was received too often and went to %s", id, to),
					slog.String("queue", from), slog.String("message_id", id), slog.String("outcome", "dead-lettered"))
			}
		},
		Expired: func(name string, n int) {
			counts.Expired(name, n)
			e.well.expired.Add(int64(n))
			r.note(slog.LevelWarn, "broker", fmt.Sprintf("%d messages of %s passed its retention period and are gone", n, name),
				slog.String("queue", name), slog.String("outcome", "expired"))
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

func (e *Environment) awsEvents() *aws.Events {
	r := e.report
	return &aws.Events{
		Corrupted: func(c aws.Corruption) {
			r.note(slog.LevelError, "aws", c.String(), slog.String("queue", c.Queue), slog.String("message_id", c.MessageID))
		},
		ClockAdjusted: func(offset time.Duration) {
			r.note(slog.LevelWarn, "aws",
				fmt.Sprintf("the clock of this machine is off by %s; signatures allow for it, but set the clock", short(offset)))
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
