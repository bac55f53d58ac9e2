package environment

import (
	"time"

	"tendril/aws"
	"tendril/console"
	"tendril/queue"
	"tendril/worker"
)

// afterFailure is what becomes of a message that was not done.
type afterFailure struct {
	// known tells that the queue's redrive policy is, or that it has none.
	known bool
	// dead is the dead-letter queue that the message goes to next; "" where it comes
	// again.
	dead string
	// most is how often the queue hands a message out before that.
	most int
}

// afterFailure looks at the redrive policy of a message's queue.
func (e *Environment) afterFailure(l *line, s *worker.Settled) (next afterFailure) {
	switch {
	case s.Outcome == queue.Done, s.ReceivesHere == 0:
		return next
	case s.Outcome == queue.Unreached && l.embedded:
		return afterFailure{known: true} // its receive does not count
	}
	var dead string
	if l.embedded {
		attrs, err := e.broker.Attributes(l.queue.name)
		if err != nil {
			return next
		}
		next.known = true
		dead, next.most = aws.RedrivePolicy(attrs)
		if _, err := e.broker.Attributes(dead); err != nil {
			return next // without it, the queue keeps its messages
		}
	} else {
		r, ok := e.depths.OnSQS(l.queue.name, time.Now())
		next.known, next.most, dead = ok, r.MaxReceives, r.DeadLetterQueue
	}
	if next.known && next.most > 0 && s.ReceivesHere >= next.most {
		next.dead = dead
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
