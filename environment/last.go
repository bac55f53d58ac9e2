package environment

import (
	"time"

	"tendril/aws"
	"tendril/console"
	"tendril/logging"
	"tendril/queue"
	"tendril/worker"
)

// afterFailure looks at the redrive policy of a message's queue.
func (e *Environment) afterFailure(l *pipeline, s *worker.Settled) (next logging.Redelivery) {
	switch {
	case s.Outcome == queue.Done, s.ReceivesHere == 0:
		return next
	case s.Outcome == queue.Unreached && l.embedded:
		return logging.Redelivery{Known: true} // its receive does not count
	}
	var dead string
	if l.embedded {
		attrs, err := e.broker.Attributes(l.queue.name)
		if err != nil {
			return next
		}
		next.Known = true
		dead, next.MaxReceives = aws.RedrivePolicy(attrs)
		if _, err := e.broker.Attributes(dead); err != nil {
			return next // without it, the queue keeps its messages
		}
	} else {
		r, ok := e.depths.OnSQS(l.queue.name, time.Now())
		next.Known, next.MaxReceives, dead = ok, r.MaxReceives, r.DeadLetterQueue
	}
	if next.Known && next.MaxReceives > 0 && s.ReceivesHere >= next.MaxReceives {
		next.DeadLetterQueue = dead
	}
	return next
}

// inWork returns the attempt at a message that the app works on now.
func (e *Environment) inWork(id string) (console.Delivery, bool) {
	if !e.running() {
		return console.Delivery{}, false
	}
	for _, l := range e.lines {
		if attempt, since, ok := l.worker.InWork(id); ok {
			now := time.Now()
			return console.Delivery{MessageID: id, Queue: l.queue.name, Outcome: console.InWork, Attempt: attempt,
				DurationMS: now.Sub(since).Milliseconds(), At: now}, true
		}
	}
	return console.Delivery{}, false
}
