package environment

import (
	"time"

	"tendril/broker"
	"tendril/console"
	"tendril/health"
	"tendril/logging"
	"tendril/worker"
)

// workerEvents are the listeners of a queue's worker: the log, health and the console, which remembers
// the deliveries in shown.
func (q *pipelines) workerEvents(l *pipeline, monitor *health.Monitor, shown *console.Deliveries) *worker.Events {
	return worker.JoinEvents(q.Logger.Worker(l.name, l.target), &worker.Events{
		Received: func(worker.Received) { monitor.PollAnswered(l.name) },
		Settled: func(s worker.Settled) {
			next := q.afterFailure(l, &s)
			shown.Record(q.delivery(l.name, &s, next))
			if class, counts := deliveryClass(&s, l.settings().ToFunction()); counts {
				monitor.Delivered(class, s.Duration)
			}
			q.Logger.Settled(l.name, l.goesTo(), &s, next)
		},
		GateChanged: func(worker.GateChanged) { monitor.JudgeSoon() },
		PollFailed:  func(p worker.PollFailed) { monitor.PollFailed(l.name, p.Err, p.Permanent) },
		Expired:     func(worker.Expired) { monitor.Expired(1) },
	})
}

// delivery is a delivery as the console shows it to those who ask, or wait, for it.
func (c *core) delivery(name string, s *worker.Settled, next logging.Redelivery) console.Delivery {
	d := console.Delivery{
		MessageID: s.ID, Queue: name, Outcome: s.Outcome.String(), Status: s.Status, Reason: s.Reason, Answer: s.Answer,
		Attempt: s.Attempt, ReceiveCount: s.ReceiveCount, DurationMS: s.Duration.Milliseconds(),
		WaitMS: s.Wait.Milliseconds(), At: time.Now(), RetryAt: s.NextRetry,
	}
	if next.DeadLetterQueue != "" {
		d.RetryAt, d.DeadLetterQueue = time.Time{}, next.DeadLetterQueue
	}
	if c.s.Quiet {
		d.Answer = ""
	}
	return d
}

// brokerEvents are the listeners of the embedded queues: the log, the counters, and health. forget is
// told of each message that the app gets no more.
func (c *core) brokerEvents(counts *broker.Events, monitor *health.Monitor, forget func(id string)) *broker.Events {
	logged := c.Logger.Broker()
	return &broker.Events{
		DeadLettered: func(from, to string, ids []string) {
			counts.DeadLettered(from, to, ids)
			for _, id := range ids {
				forget(id)
			}
			logged.DeadLettered(from, to, ids)
		},
		Expired: func(name string, n int) {
			counts.Expired(name, n)
			monitor.Expired(int64(n))
			logged.Expired(name, n)
		},
	}
}
