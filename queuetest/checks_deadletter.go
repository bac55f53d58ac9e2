package queuetest

import (
	"slices"

	"tendril/queue"
)

var deadLetterChecks = map[string]check{
	"C1 C3 C6 dead letters: moved when the count would be exceeded": checkDeadLetterMove,
	"C6 dead letters: they name their source": func(e *checkRun) {
		q, dead := e.withDeadLetterQueue("1", nil, text("b"))
		if m := e.receiveOne(q, 0); m.DeadLetterSource != "" {
			e.errorf("before the move the dead-letter source is %q", m.DeadLetterSource)
		}
		e.wantEmpty("it is used up", q)
		if m, want := e.take(dead), e.attribute(q, "QueueArn"); m.DeadLetterSource != want {
			e.errorf("dead-letter source %q, want %q", m.DeadLetterSource, want)
		}
	},
	"C3 dead letters: not before the receive that exceeds": checkDeadLetterLazy,
	"C4 dead letters: the count may be a string": func(e *checkRun) {
		q, dead := e.withDeadLetterQueue(`"1"`, nil, text("b"))
		e.receiveOne(q, 0)
		e.wantEmpty("its one receive is used up", q)
		e.wantNext("the dead letters", dead, "b")
	},
	"C4 dead letters: without a count there are ten receives": func(e *checkRun) {
		dead := e.standard()
		policy := `{"deadLetterTargetArn":"` + e.attribute(dead, "QueueArn") + `"}`
		q := e.create(attrs{"RedrivePolicy": policy}, text("b"))
		for range 10 {
			e.receiveOne(q, 0)
		}
		e.wantEmpty("ten receives are used up", q)
		e.wantNext("the dead letters", dead, "b")
	},
	"C4 dead letters: a policy is refused when it cannot work":  checkPolicies,
	"C6 dead letters: a FIFO group goes on without the message": checkDeadLetterFIFO,
	"C7 dead letters: from one dead-letter queue to the next": func(e *checkRun) {
		q, dead := e.withDeadLetterQueue("1", nil)
		last := e.standard()
		e.must("setting the policy", dead.SetAttributes(e.ctx, attrs{"RedrivePolicy": e.policy(last, "1")}))
		e.send(q, text("b"))
		e.receiveOne(q, 0)
		e.wantEmpty("it is used up", q)
		e.receiveOne(dead, 0)
		e.wantEmpty("it is used up there too", dead)
		e.wantNext("the last queue", last, "b")
	},
	"dead letters: deleted in time is not moved": func(e *checkRun) {
		q, dead := e.withDeadLetterQueue("1", nil, text("b"))
		e.remove(q, e.receiveOne(q, e.short))
		e.wait(2 * e.short)
		e.wantEmpty("it was deleted", q)
		e.wantEmpty("it was deleted", dead)
	},
}

func checkDeadLetterMove(e *checkRun) {
	q, dead := e.withDeadLetterQueue("2", nil)
	attributes := []queue.Attribute{{Name: "bin", Type: "Binary", Value: "\x00\xff"},
		{Name: "s", Type: "String", Value: awkward}}
	e.send(q, queue.Outgoing{Body: awkward, Attributes: attributes})
	first := e.receiveOne(q, 0)
	e.wantReceives("the second receive", e.receiveOne(q, 0), 2)

	e.wantEmpty("two receives are used up", q)
	m := e.take(dead)
	if m.ID != first.ID || m.Body != awkward || !slices.Equal(m.Attributes, attributes) {
		e.errorf("the message changed on its way to the dead-letter queue: %+v", m)
	}

	e.wantReceives("in the dead-letter queue, which goes on counting", m, 3)
	if !m.SentAt.Equal(first.SentAt) {
		e.errorf("sent at %s in the dead-letter queue, at %s before: a standard queue keeps the time", m.SentAt,
			first.SentAt)
	}
}

func checkDeadLetterLazy(e *checkRun) {
	q, dead := e.withDeadLetterQueue("1", nil, text("b"))
	e.receiveOne(q, e.short)
	e.wait(2 * e.short)
	e.wantCounts(q, "after the timeout", "1", "0", "0")
	e.wantCounts(dead, "before the receive that exceeds", "0", "0", "0")
	e.wantEmpty("its one receive is used up", q)
	e.take(dead)
}

func checkPolicies(e *checkRun) {
	q := e.standard()
	standard := e.standard()
	fifo := e.fifo(nil)
	for what, policy := range map[string]string{
		"a dead-letter queue that does not exist": `{"deadLetterTargetArn":"` + e.attribute(standard, "QueueArn") +
			`-none","maxReceiveCount":3}`,
		"a FIFO queue for a standard one":          e.policy(fifo, "3"),
		"a count of 0":                             e.policy(standard, "0"),
		"a count of 1001":                          e.policy(standard, "1001"),
		"a policy that is not JSON":                `{`,
		"a policy without a dead-letter queue":     `{"maxReceiveCount":3}`,
		"a dead-letter queue given by a bare name": `{"deadLetterTargetArn":"dead","maxReceiveCount":3}`,
	} {
		err := q.SetAttributes(e.ctx, attrs{"RedrivePolicy": policy})
		e.wantCode(what, err, queue.CodeInvalidParameterValue, queue.CodeInvalidAttributeValue,
			queue.CodeQueueDoesNotExist)
	}

	_, err := e.server.Create(e.ctx, e.name(nil), attrs{"RedrivePolicy": e.policy(fifo, "3")})
	e.wantCode("creating a standard queue with a FIFO dead-letter queue", err, queue.CodeInvalidParameterValue,
		queue.CodeInvalidAttributeValue)
}

func checkDeadLetterFIFO(e *checkRun) {
	q, dead := e.withDeadLetterQueue("1", attrs{"FifoQueue": "true"})
	sent := e.send(q, grouped("g", "d1", "first"), grouped("g", "d2", "second"))
	e.wantBodies("at first", e.receiveAll(q, 1, 0), "first")
	e.wantNext("when the first is used up", q, "second")
	m := e.take(dead)
	if m.ID != sent[0].ID || m.GroupID != "g" || m.DedupID != "d1" {
		e.errorf("the dead letter is %+v, want the first message with its group and deduplication id", m)
	}
}
