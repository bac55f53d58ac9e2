package queuetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

var fifoChecks = map[string]check{
	"E2 fifo: one receive gives a group in order": checkFIFOOrder,
	"E1 fifo: a group waits for its message in flight, others flow": func(e *checkRun) {
		q := e.fifo(nil, grouped("a", "1", "a1"), grouped("a", "2", "a2"), grouped("b", "3", "b1"))
		first := e.takeAll(q, 1)
		e.wantBodies("at first", first, "a1")
		e.wantNext("beside a1 in flight", q, "b1")
		e.wantEmpty("both groups have a message in flight", q)
		e.remove(q, first...)
		e.wantNext("when a1 is deleted", q, "a2")
	},
	"E2 fifo: a part deleted, the rest still holds the group": func(e *checkRun) {
		q := e.fifo(nil, inGroup("1", "2", "3")...)
		got := e.takeAll(q, 2)
		e.remove(q, got[0])
		e.wantEmpty("2 is in flight", q)
		e.remove(q, got[1])
		e.wantNext("when both are deleted", q, "3")
	},
	"E1 fifo: a message in flight blocks those behind it, not those before": func(e *checkRun) {
		q := e.fifo(nil, inGroup("1", "2", "3")...)
		got := e.takeAll(q, 2)
		e.hideFor(q, got[0], 0)
		first := e.receive(q, 10, e.soon(), new(time.Minute))
		e.wantBodies("1 is before 2, which is in flight", first, "1")
		e.remove(q, first...)
		e.wantEmpty("3 is behind 2", q)
		e.remove(q, got[1])
		e.wantNext("when 2 is deleted", q, "3")
	},
	"E3 fifo: extending one message holds those behind it": func(e *checkRun) {
		q := e.fifo(nil, inGroup("1", "2", "3", "4")...)
		e.validFor(2 * e.short)
		got := e.receiveAll(q, 3, 2*e.short)
		e.renewValidity(time.Minute, func() { e.hideFor(q, got[1], time.Minute) })
		e.wait(3 * e.short)
		e.wantBodies("2 was extended", e.receive(q, 10, e.soon(), new(time.Minute)), "1")
		e.wantEmpty("3 and 4 are behind 2", q)
	},
	"E4 fifo: a message that returns is first again": func(e *checkRun) {
		q := e.fifo(nil, inGroup("1", "2", "3")...)
		got := e.takeAll(q, 2)
		e.hideFor(q, got[1], 0)
		e.hideFor(q, got[0], 0)
		e.wantNext("afterwards", q, "1", "2", "3")
	},
	"E4 fifo: order holds over timeouts": func(e *checkRun) {
		q := e.fifo(nil, inGroup("1", "2")...)
		e.wantBodies("at first", e.receiveAll(q, 1, e.short), "1")
		e.wait(2 * e.short)
		again := e.takeAll(q, 2)
		e.wantBodies("after the timeout", again, "1", "2")
		if again[0].ReceiveCount != 2 || again[1].ReceiveCount != 1 {
			e.errorf("receive counts %d and %d, want 2 and 1", again[0].ReceiveCount, again[1].ReceiveCount)
		}
	},
	"E10 fifo: sequence numbers grow": checkSequence,
	"fifo: a group id is required": refusal(attrs{"FifoQueue": "true"}, []queue.Outgoing{{Body: "b", DedupID: "d"}},
		queue.CodeMissingRequiredParameter, queue.CodeInvalidParameterValue),
	"fifo: a batch with one message without its ids fails as a whole": func(e *checkRun) {
		q := e.fifo(nil)
		for what, bad := range map[string]queue.Outgoing{
			"group":         {Body: "b", DedupID: "d"},
			"deduplication": {Body: "b", GroupID: "g"},
		} {
			_, err := q.Send(e.ctx, []queue.Outgoing{grouped("g", "1", "good"), bad})
			e.wantCode("one message without a "+what+" id", err, queue.CodeMissingRequiredParameter,
				queue.CodeInvalidParameterValue)
		}
		e.wantEmpty("nothing of such a batch is sent", q)
	},
	"fifo: ids are 1 to 128 plain characters": func(e *checkRun) {
		q := e.fifo(nil)
		e.wantRefused("a group id with a space", q, []queue.Outgoing{grouped("a b", "d", "b")},
			queue.CodeInvalidParameterValue)
		e.wantRefused("a deduplication id of 129", q, []queue.Outgoing{grouped("g", fmt.Sprintf("%0129d", 1), "b")},
			queue.CodeInvalidParameterValue)
		e.send(q, grouped("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", fmt.Sprintf("%0128d", 1), "b"))
	},
	"E9 fifo: an attempt id repeats a receive": checkAttemptID,
	"fifo: purge empties groups in flight": func(e *checkRun) {
		q := e.fifo(nil, inGroup("1", "2")...)
		e.receiveAll(q, 1, time.Hour)
		e.must("purging", q.Purge(e.ctx))
		e.send(q, grouped("g", "3", "3"))
		e.wantNext("after the purge", q, "3")
	},
	"E4 fifo: a group whose messages expired goes behind the others": func(e *checkRun) {
		q := e.fifo(nil)
		for _, m := range []string{"a1", "a2", "a3", "a4", "b1", "c1"} {
			e.send(q, grouped(m[:1], m, m))
		}
		e.wantBodies("at first", e.receiveAll(q, 2, e.short), "a1", "a2")
		e.wantBodies("then", e.receiveAll(q, 1, e.short), "b1")
		e.wait(2 * e.short)
		got := e.receive(q, 10, e.soon(), new(time.Minute))
		if len(got) == 0 || got[0].Body != "c1" {
			e.errorf("received %s; c was not given out before, so it comes first", bodies(got))
		}
	},
	"E4 fifo: a group that was given out goes behind the others": func(e *checkRun) {
		q := e.fifo(nil)
		for _, m := range []string{"a1", "b1", "b2", "c1", "a2"} {
			e.send(q, grouped(m[:1], m, m))
		}
		e.wantBodies("at first", e.receiveAll(q, 3, 0), "a1", "a2", "b1")
		e.wantNext("then", q, "c1", "a1", "a2", "b1", "b2")
	},
}

func checkFIFOOrder(e *checkRun) {
	q := e.fifo(nil)
	var want []string
	for i := range 25 {
		body := fmt.Sprint("m", i)
		sent := e.send(q, grouped("g", body, body))
		if sent[0].SequenceNumber == "" {
			e.fatalf("a FIFO send has no sequence number")
		}
		want = append(want, body)
	}

	for len(want) > 0 {
		n := min(10, len(want))
		got := e.receive(q, 10, e.soon(), nil)
		e.wantBodies("the next of the group", got, want[:n]...)
		for _, m := range got {
			if m.GroupID != "g" || m.DedupID != m.Body || m.SequenceNumber == "" {
				e.fatalf("message %s has group %q, deduplication id %q, sequence number %q", m.Body, m.GroupID, m.DedupID,
					m.SequenceNumber)
			}
		}
		e.remove(q, got...)
		want = want[n:]
	}
}

// checkSequence expects sequence numbers to increase across groups; SQS documents this only within a group.
func checkSequence(e *checkRun) {
	q := e.fifo(nil)
	var sent []queue.Sent
	for i := range 12 {
		sent = append(sent, e.send(q, grouped(fmt.Sprint("g", i%3), fmt.Sprint(i), "b"))...)
	}
	for i := 1; i < len(sent); i++ {
		if compareNumbers(sent[i-1].SequenceNumber, sent[i].SequenceNumber) >= 0 {
			e.fatalf("sequence numbers do not grow: %v", sent)
		}
	}
}

// compareNumbers compares decimal numbers of any length without leading zeros.
func compareNumbers(x, y string) int {
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
}

func checkAttemptID(e *checkRun) {
	q := e.fifo(nil, inGroup("1", "2")...)
	req := queue.ReceiveRequest{Max: 10, Wait: new(time.Duration), Visibility: new(time.Minute), AttemptID: "attempt-1"}
	first, err := q.Receive(e.ctx, req)
	if err != nil || len(first) != 2 {
		e.fatalf("received %s, %v; want both", bodies(first), err)
	}

	again, err := q.Receive(e.ctx, req)
	e.must("receiving again with the same attempt id", err)
	if !slices.EqualFunc(first, again, func(x, y queue.Message) bool {
		return x.ID == y.ID && x.ReceiptHandle == y.ReceiptHandle
	}) {
		e.fatalf("the same attempt id gave %s, want the same messages with the same receipts", bodies(again))
	}

	e.wantEmpty("both are in flight", q)
	e.remove(q, first...)
}

var deduplicationChecks = map[string]check{
	"E5 deduplication: the second send is answered with the first": func(e *checkRun) {
		q := e.fifo(nil)
		first := e.send(q, grouped("g", "d", "first"))[0]
		second := e.send(q, grouped("other", "d", "second"))[0]
		if second.ID != first.ID || second.SequenceNumber != first.SequenceNumber {
			e.errorf("the duplicate was answered with %+v, the first with %+v", second, first)
		}
		m := e.take(q)
		e.wantBodies("in the queue", []queue.Message{m}, "first")
		e.remove(q, m)
		e.send(q, grouped("g", "d", "third"))
		e.wantEmpty("the id is remembered after the delete", q)
	},
	"E5 deduplication: within one batch": func(e *checkRun) {
		q := e.fifo(nil)
		sent := e.send(q, grouped("g", "d", "1"), grouped("g", "d", "2"), grouped("g", "e", "3"))
		if sent[0].ID != sent[1].ID || sent[0].ID == sent[2].ID {
			e.errorf("ids %s, %s, %s; want the first two equal", sent[0].ID, sent[1].ID, sent[2].ID)
		}
		e.wantNext("in the queue", q, "1", "3")
	},
	"E6 deduplication: by group when the queue says so": func(e *checkRun) {
		q := e.fifo(attrs{"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"},
			grouped("a", "d", "1"), grouped("b", "d", "2"), grouped("a", "d", "3"))
		got := e.takeAll(q, 2)
		e.wantBodies("in the queue", sortedByBody(got), "1", "2")
		e.wantEmpty("3 is a duplicate of 1", q)
	},
	"E7 deduplication: by content, body only": func(e *checkRun) {
		q := e.fifo(attrs{"ContentBasedDeduplication": "true"})
		with := func(body, dedup, value string) queue.Outgoing {
			m := grouped("g", dedup, body)
			m.Attributes = []queue.Attribute{{Name: "a", Type: "String", Value: value}}
			return m
		}
		e.send(q, with("same", "", "1"), with("same", "", "2"), with("same", "own", "3"), with("other", "", "4"))
		got := e.takeAll(q, 3)
		e.wantBodies("in the queue", got, "same", "same", "other")
		if got[0].Attribute("a") != "1" || got[1].Attribute("a") != "3" || got[1].DedupID != "own" {
			e.errorf("got %+v and %+v; an id of one's own wins over the content", got[0], got[1])
		}
	},
	"deduplication: an id is required without content": refusal(attrs{"FifoQueue": "true"},
		[]queue.Outgoing{grouped("g", "", "b")}, queue.CodeInvalidParameterValue, queue.CodeMissingRequiredParameter),
	"E8 deduplication: purge forgets": func(e *checkRun) {
		q := e.fifo(nil, grouped("g", "d", "first"))
		e.must("purging", q.Purge(e.ctx))
		e.send(q, grouped("g", "d", "second"))
		e.wantNext("after the purge", q, "second")
	},
}
