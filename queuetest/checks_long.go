package queuetest

import (
	"time"

	"tendril/queue"
)

// longChecks take minutes, so they run only in virtual time.
var longChecks = map[string]check{
	"E5 deduplication: for five minutes from the first send": func(e *checkRun) {
		q := e.fifo(nil, grouped("g", "d", "first"))
		e.remove(q, e.take(q))
		e.wait(5*time.Minute - 2*time.Second)
		e.send(q, grouped("g", "d", "second")) // a duplicate does not start a new deduplication interval
		e.wantEmpty("five minutes have not passed", q)
		e.wait(4 * time.Second)
		e.send(q, grouped("g", "d", "third"))
		e.wantNext("after five minutes", q, "third")
	},
	"C10 queue: retention ends, in flight or not": func(e *checkRun) {
		q := e.create(attrs{"MessageRetentionPeriod": "60"}, text("visible"), text("in flight"))
		m := e.receiveOne(q, time.Hour)
		e.wait(59 * time.Second)
		e.wantCounts(q, "after 59 s", "1", "1", "0")
		e.wait(3 * time.Second)
		e.wantEmpty("its retention is over", q)
		_ = e.change(q, m.ReceiptHandle, 0)
		e.wantEmpty("retention ends in flight too", q)
	},
	"C9 queue: a shorter retention holds for old messages": func(e *checkRun) {
		q := e.standard("old")
		e.wait(10 * time.Minute)
		e.send(q, text("new"))
		e.must("setting the retention", q.SetAttributes(e.ctx, attrs{"MessageRetentionPeriod": "300"}))
		e.wait(time.Minute)
		e.wantNext("after the change", q, "new")
		e.wantEmpty("the old message is past the new retention", q)
	},
	"C5 queue: dead letters of a standard queue keep their age": func(e *checkRun) {
		q, dead := e.withDeadLetterQueue("1", attrs{"MessageRetentionPeriod": "300"}, text("b"))
		e.wait(4 * time.Minute)
		e.receiveOne(q, 0)
		e.wantEmpty("it is used up", q)
		e.wantBodies("the dead letters", e.receiveAll(dead, 1, 0), "b")
		e.wait(2 * time.Minute)
		e.wantEmpty("it was sent six minutes ago", dead)
	},
	"C5 queue: dead letters of a FIFO queue begin a new age": func(e *checkRun) {
		q, dead := e.withDeadLetterQueue("1", attrs{"FifoQueue": "true", "MessageRetentionPeriod": "300"},
			grouped("g", "d", "b"))
		e.wait(4 * time.Minute)
		sent := e.receiveOne(q, 0).SentAt
		e.wantEmpty("it is used up", q)
		e.wait(4 * time.Minute)
		if m := e.receiveOne(dead, 0); m.SentAt.Sub(sent) < 3*time.Minute {
			e.errorf("sent at %s, dead-lettered four minutes later, and now sent at %s", sent, m.SentAt)
		}
		e.wait(2 * time.Minute)
		e.wantEmpty("it was dead-lettered six minutes ago", dead)
	},
	"B10 visibility: 12 hours are not begun anew by extending": func(e *checkRun) {
		q := e.standard("b")
		m := e.receiveOne(q, time.Hour)
		for range 11 {
			e.wait(59 * time.Minute)
			e.hideFor(q, m, time.Hour)
		}
		e.wait(time.Hour - time.Second)
		e.wantCode("an extension beyond 12 hours", e.change(q, m.ReceiptHandle, time.Hour),
			queue.CodeInvalidParameterValue)
		e.wantNext("afterwards", q, "b")
	},
}
