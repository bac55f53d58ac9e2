package queuetest

import (
	"errors"
	"strings"
	"time"

	"tendril/queue"
)

var receiptChecks = map[string]check{
	"B1 receipt: each receive has its own, the newest deletes": checkNewReceipts,
	"B1 receipt: on a standard queue an older one still acts":  checkOlderReceipt,
	"B2 receipt: a standard queue deletes after the timeout": func(e *checkRun) {
		q := e.standard("b")
		m := e.receiveOne(q, e.short)
		e.wait(2 * e.short)
		e.remove(q, m)
		e.wantEmpty("it was deleted", q)
	},
	"B3 receipt: a FIFO queue refuses one that has expired": func(e *checkRun) {
		q := e.fifo(nil, grouped("g", "d", "b"))
		m := e.receiveOne(q, e.short)
		e.wait(2 * e.short)
		errs := q.Delete(e.ctx, []string{m.ReceiptHandle})
		if len(errs) != 1 {
			e.fatalf("the delete of an expired receipt: errors %v, want one", errs)
		}
		e.wantCode("the delete of an expired receipt", errs[0], queue.CodeInvalidParameterValue)
		e.wantNext("afterwards", q, "b")
	},
	"B4 receipt: a FIFO queue deletes when it was extended in time": func(e *checkRun) {
		q := e.fifo(nil, grouped("g", "d", "b"))
		e.validFor(2 * e.short)
		m := e.receiveOne(q, 2*e.short)
		e.renewValidity(time.Minute, func() { e.hideFor(q, m, time.Minute) })
		e.wait(3 * e.short)
		e.remove(q, m)
		e.wantEmpty("it was deleted", q)
	},
	"B5 receipt: deleting twice is not an error": func(e *checkRun) {
		q := e.standard("b")
		m := e.take(q)
		for range 3 {
			e.remove(q, m)
		}
	},
	"B6 receipt: a malformed one is refused alone": checkMalformedReceipt,
}

func checkNewReceipts(e *checkRun) {
	q := e.standard("b")
	first := e.receiveOne(q, 0)
	second := e.take(q)
	if first.ReceiptHandle == second.ReceiptHandle {
		e.errorf("two receives gave the same receipt")
	}
	if first.ID != second.ID {
		e.errorf("the id changed from %s to %s", first.ID, second.ID)
	}
	e.remove(q, first) // SQS may or may not delete the message
	e.remove(q, second)
	e.wait(e.short)
	e.wantEmpty("it was deleted", q)
}

func checkOlderReceipt(e *checkRun) {
	q := e.standard("b")
	first := e.receiveOne(q, 0)
	e.receiveOne(q, time.Hour)
	e.must("showing the message by its first receipt", e.change(q, first.ReceiptHandle, 0))
	e.receiveOne(q, time.Hour)
	e.must("hiding the message by its first receipt", e.change(q, first.ReceiptHandle, e.short))
	e.wait(2 * e.short)
	third := e.receiveOne(q, time.Hour)
	if third.ReceiveCount != 4 {
		e.errorf("receive count %d, want 4", third.ReceiveCount)
	}
	e.remove(q, first)
	e.wantCode("changing what the first receipt deleted", e.change(q, third.ReceiptHandle, 0),
		queue.CodeInvalidParameterValue, queue.CodeMessageNotInflight)
}

func checkMalformedReceipt(e *checkRun) {
	q := e.standard("b")
	m := e.take(q)
	const junk = "this is not a receipt"
	errs := q.Delete(e.ctx, []string{junk, m.ReceiptHandle})
	if len(errs) != 2 || errs[1] != nil {
		e.fatalf("deleting junk and a message: %v, want one error and nil", errs)
	}
	e.wantCode("deleting junk", errs[0], queue.CodeReceiptHandleIsInvalid)
	e.wantCode("hiding junk", e.change(q, junk, time.Minute), queue.CodeReceiptHandleIsInvalid)
	e.wantCode("deleting long junk", errors.Join(q.Delete(e.ctx, []string{strings.Repeat("A", 300)})...),
		queue.CodeReceiptHandleIsInvalid)
}

var visibilityChecks = map[string]check{
	"C2 visibility: received is hidden, then back with a count": checkHidden,
	"B11 visibility: the call's value wins over the queue's":    checkVisibilityPrecedence,
	"B12 visibility: a receive with 0 leaves it visible": func(e *checkRun) {
		q := e.standard("b")
		for want := 1; want <= 3; want++ {
			e.wantReceives("without a timeout", e.receiveOne(q, 0), want)
		}
	},
	"visibility: extended from the moment of the change": func(e *checkRun) {
		q := e.standard("b")
		e.validFor(2 * e.short)
		m := e.receiveOne(q, 2*e.short)
		e.wait(e.short)
		e.renewValidity(3*e.short, func() { e.hideFor(q, m, 3*e.short) })
		e.wait(2 * e.short)
		e.wantEmpty("its visibility was extended", q)
		e.endValidity()
		e.wantNext("when the extension is over", q, "b")
	},
	"B9 visibility: 0 shows it at once and is not remembered": func(e *checkRun) {
		q := e.standard("b")
		e.hideFor(q, e.receiveOne(q, time.Hour), 0)
		if got := e.receive(q, 1, e.soon(), nil); len(got) != 1 || got[0].ReceiveCount != 2 {
			e.fatalf("received %s after the change to 0, want the message for the second time", bodies(got))
		}
		e.wantEmpty("the queue's own 30 s hide it", q)
	},
	"visibility: what was given back unread was not received": checkUnread,
	"B7 visibility: a change never hides what is visible again": func(e *checkRun) {
		q := e.standard("b")
		m := e.receiveOne(q, e.short)
		e.wait(2 * e.short)
		_ = e.change(q, m.ReceiptHandle, time.Hour) // SQS may or may not return an error
		e.wantNext("afterwards", q, "b")
	},
	"B8 visibility: a deleted message cannot be changed": func(e *checkRun) {
		q := e.standard("b")
		m := e.take(q)
		e.remove(q, m)
		e.wantCode("the change", e.change(q, m.ReceiptHandle, time.Minute), queue.CodeInvalidParameterValue,
			queue.CodeMessageNotInflight)
	},
	"B10 visibility: 12 hours in all from the receive": func(e *checkRun) {
		q := e.standard("b")
		m := e.take(q)
		e.wantCode("43200 s right after the receive", e.change(q, m.ReceiptHandle, queue.MaxVisibility),
			queue.CodeInvalidParameterValue)
		e.wait(e.short + e.short/2)
		e.wantCode("43200 s a while after the receive", e.change(q, m.ReceiptHandle, queue.MaxVisibility),
			queue.CodeInvalidParameterValue)
		e.wantCode("43201 s", e.change(q, m.ReceiptHandle, queue.MaxVisibility+time.Second),
			queue.CodeInvalidParameterValue)
		e.hideFor(q, m, queue.MaxVisibility-time.Minute)
	},
}

func checkHidden(e *checkRun) {
	q := e.standard("b")
	e.validFor(2 * e.short)
	first := e.receiveOne(q, 2*e.short)
	e.wantEmpty("it is hidden", q)
	e.endValidity()
	second := e.take(q)
	if second.ReceiveCount != 2 || second.ID != first.ID || !second.SentAt.Equal(first.SentAt) {
		e.errorf("the second receive is %+v, the first was %+v", second, first)
	}
	if !second.FirstReceivedAt.Equal(first.FirstReceivedAt) {
		e.errorf("first received at %s, then at %s", first.FirstReceivedAt, second.FirstReceivedAt)
	}
	e.wantEmpty("it is hidden again", q)
}

// With UncountsUnread, a receive is uncounted only once, and receipt handles stay valid. Otherwise, the receive
// counts.
func checkUnread(e *checkRun) {
	q, dead := e.withDeadLetterQueue("3", attrs{"FifoQueue": "true"}, grouped("g", "1", "b"))
	if !e.suite.UncountsUnread {
		e.must("returning the message unread", e.returnUnread(q, e.take(q), 0))
		e.wantReceives("after an unread return", e.take(q), 2)
		return
	}

	counted := e.take(q)
	e.hideFor(q, counted, 0)
	var last queue.Message
	for range 5 {
		m := e.take(q)
		e.wantReceives("after one counted receive", m, 2)
		if !m.FirstReceivedAt.Equal(counted.FirstReceivedAt) {
			e.errorf("first received at %v, want %v", m.FirstReceivedAt, counted.FirstReceivedAt)
		}
		if m.ReceiptHandle == last.ReceiptHandle {
			e.errorf("two receives gave the same receipt handle")
		}
		for _, hide := range []time.Duration{time.Minute, time.Minute, 0} {
			e.must("returning the message unread", e.returnUnread(q, m, hide))
		}
		last = m
	}

	second := e.take(q)
	e.wantCode("returning the message with an earlier receipt handle", e.returnUnread(q, last, 0),
		queue.CodeInvalidParameterValue)
	e.hideFor(q, second, 0)
	third := e.take(q)
	e.wantReceives("after two counted receives", third, 3)
	e.hideFor(q, third, 0)
	e.wantEmpty("three receives counted, and the policy allows no more", q)
	e.wantReceives("in the dead-letter queue", e.take(dead), 4)
}

func (e *checkRun) returnUnread(q Queue, m queue.Message, hide time.Duration) error {
	change := queue.VisibilityChange{ReceiptHandle: m.ReceiptHandle, Visibility: hide, Unread: true}
	return errors.Join(q.ChangeVisibility(e.ctx, []queue.VisibilityChange{change})...)
}

func (e *checkRun) wantReceives(when string, m queue.Message, want int) {
	if m.ReceiveCount != want {
		e.errorf("%s: receive count %d, want %d", when, m.ReceiveCount, want)
	}
}

func checkVisibilityPrecedence(e *checkRun) {
	q := e.create(attrs{"VisibilityTimeout": seconds(2 * e.short)}, text("b"))
	e.validFor(2 * e.short)
	if got := e.receive(q, 1, e.soon(), nil); len(got) != 1 {
		e.fatalf("received %d messages, want 1", len(got))
	}
	e.wantEmpty("the queue's timeout hides it", q)
	e.endValidity()
	e.take(q) // visible after that, then invisible for a minute
	e.wait(3 * e.short)
	e.wantEmpty("the call's minute hides it", q)
}
