package environment

import (
	"time"

	"tendril/broker"
	"tendril/console"
	"tendril/logging"
	"tendril/worker"
)

// The listeners turn what the parts report into lines and into what the
// console remembers.

// workerEvents are the listeners of a queue's worker: the log, health and the console.
func (e *Environment) workerEvents(l *pipeline) *worker.Events {
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
				if e.app != nil {
					e.app.Forget(id)
				}
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
