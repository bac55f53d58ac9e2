package queuetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tendril/queue"
)

// SQS accepts this text, but careless encoders damage it.
const awkward = "tab\t newline\n return\r quote\" back\\slash </x>&amp; é \u2028 \uE000 \U0001F600 \u007f"

var sendChecks = map[string]check{
	"send: a message comes back as it was sent": checkRoundTrip,
	"send: results are in order, ids are new":   checkSendOrder,
	"send: the trace header comes back": func(e *checkRun) {
		const header = "Root=1-5759e988-bd862e3fe1be46a994272793"
		q := e.create(nil, queue.Outgoing{Body: "b", TraceHeader: header})
		if m := e.take(q); m.TraceHeader != header {
			e.errorf("trace header %q", m.TraceHeader)
		}
	},
	"send: a group id on a standard queue comes back": func(e *checkRun) {
		q := e.create(nil, queue.Outgoing{Body: "b", GroupID: "g"})
		if m := e.take(q); m.GroupID != "g" {
			e.errorf("group id %q", m.GroupID)
		}
	},
	"send: the sender is known": func(e *checkRun) {
		if m := e.take(e.standard("b")); m.SenderID == "" {
			e.errorf("no sender id")
		}
	},
	"D5 send: a bad entry does not harm the others": checkBadEntry,
}

func checkRoundTrip(e *checkRun) {
	q := e.standard()
	began := time.Now()
	attributes := []queue.Attribute{
		{Name: "a.b-c_D", Type: "String", Value: awkward},
		{Name: "bin", Type: "Binary.png", Value: "\x00\x01\xfe\xff"},
		{Name: "n", Type: "Number", Value: "-12.50"},
		{Name: "n2", Type: "Number.int", Value: "42"},
	}
	shuffled := []queue.Attribute{attributes[2], attributes[0], attributes[3], attributes[1]}
	sent := e.send(q, queue.Outgoing{Body: awkward, Attributes: shuffled})
	m := e.take(q)
	if m.ID == "" || m.ID != sent[0].ID {
		e.errorf("id %q, the send was answered with %q", m.ID, sent[0].ID)
	}

	if m.Body != awkward {
		e.errorf("body %q, want %q", m.Body, awkward)
	}

	if !slices.Equal(m.Attributes, attributes) {
		e.errorf("attributes %q, want %q", m.Attributes, attributes)
	}

	if m.ReceiptHandle == "" || m.ReceiveCount != 1 {
		e.errorf("receipt %q, receive count %d; want one and 1", m.ReceiptHandle, m.ReceiveCount)
	}

	// The server's clock may differ, and has a precision of one millisecond.
	if m.SentAt.Sub(began).Abs() > time.Minute || m.FirstReceivedAt.Before(m.SentAt) {
		e.errorf("sent at %s, first received at %s, the test began at %s", m.SentAt, m.FirstReceivedAt, began)
	}

	if m.GroupID != "" || m.DedupID != "" || m.SequenceNumber != "" || m.DeadLetterSource != "" || m.TraceHeader != "" {
		e.errorf("a plain message has FIFO, tracing or dead-letter parts: %+v", m)
	}
}

func checkSendOrder(e *checkRun) {
	q := e.standard()
	var msgs []queue.Outgoing
	for _, c := range "0123456789" {
		msgs = append(msgs, text(string(c)))
	}

	ids := map[string]string{}
	for i, s := range e.send(q, msgs...) {
		ids[s.ID] = msgs[i].Body
	}

	if len(ids) != 10 {
		e.fatalf("%d different ids for 10 messages", len(ids))
	}

	for _, m := range e.takeAll(q, 10) {
		if ids[m.ID] != m.Body {
			e.errorf("message %s has body %q, sent was %q", m.ID, m.Body, ids[m.ID])
		}
	}
}

func checkBadEntry(e *checkRun) {
	q := e.standard()
	sent, err := q.Send(e.ctx, []queue.Outgoing{text("first"), text("not allowed: \x01"), text("last")})
	if err != nil {
		e.fatalf("the whole call failed: %v", err)
	}
	e.wantCode("a control character", sent[1].Err, queue.CodeInvalidMessageContents)
	if sent[0].Err != nil || sent[2].Err != nil {
		e.errorf("the good entries: %v, %v", sent[0].Err, sent[2].Err)
	}
	got := e.takeAll(q, 2)
	e.wantBodies("the good entries", sortedByBody(got), "first", "last")
}

var limitChecks = map[string]check{
	"limits: an empty body is refused": refusal(nil, []queue.Outgoing{text("")},
		queue.CodeMissingRequiredParameter, queue.CodeInvalidParameterValue),
	"limits: characters outside XML are refused":               checkCharacters,
	"D7 limits: MaximumMessageSize counts body and attributes": checkMessageSize,
	"limits: one message may fill a megabyte":                  checkMegabyte,
	"D6 limits: a batch may not exceed a megabyte": refusal(nil,
		slices.Repeat([]queue.Outgoing{text(strings.Repeat("x", 600_000))}, 2), queue.CodeBatchRequestTooLong),
	"D6 limits: a batch has 1 to 10 entries": func(e *checkRun) {
		q := e.standard()
		e.wantRefused("11 entries", q, slices.Repeat([]queue.Outgoing{text("b")}, 11),
			queue.CodeTooManyEntriesInBatchRequest)
		_, err := q.Send(e.ctx, nil)
		e.wantCode("no entries", err, queue.CodeEmptyBatchRequest)
	},
	"F6 limits: attributes that SQS refuses": checkAttributeRules,
	"limits: a message has at most 10 attributes": func(e *checkRun) {
		q := e.standard()
		m := text("b")
		for _, c := range "abcdefghij" {
			m.Attributes = append(m.Attributes, queue.Attribute{Name: string(c), Type: "String", Value: "v"})
		}
		e.send(q, m)
		m.Attributes = append(m.Attributes, queue.Attribute{Name: "k", Type: "String", Value: "v"})
		e.wantRefused("11 attributes", q, []queue.Outgoing{m}, queue.CodeInvalidParameterValue,
			queue.CodeInvalidAttributeValue)
	},
	"limits: what a receive may ask for": checkReceiveLimits,
	"limits: a delay is at most 15 minutes": func(e *checkRun) {
		q := e.standard()
		e.wantRefused("901 s", q, []queue.Outgoing{{Body: "b", Delay: new(901 * time.Second)}},
			queue.CodeInvalidParameterValue)
		e.send(q, queue.Outgoing{Body: "b", Delay: new(900 * time.Second)})
	},
}

func checkCharacters(e *checkRun) {
	q := e.standard()
	for _, bad := range []string{"\x00", "\x08", "\x0b", "\x1f", "\uFFFE", "\uFFFF"} {
		e.wantRefused(fmt.Sprintf("the character %q in a body", bad), q, []queue.Outgoing{text("a" + bad + "b")},
			queue.CodeInvalidMessageContents)
	}
	e.send(q, text("\t\n\r \uD7FF\uE000\uFFFD\U00010000\U0010FFFF"))
}

func checkMessageSize(e *checkRun) {
	q := e.create(attrs{"MaximumMessageSize": "1024"})
	fits := text(strings.Repeat("x", 1024-3-6-5))
	fits.Attributes = []queue.Attribute{{Name: "abc", Type: "String", Value: "12345"}}
	over := fits
	over.Body += "x"
	e.send(q, text(strings.Repeat("x", 1024)), fits)
	sent, err := q.Send(e.ctx, []queue.Outgoing{text(strings.Repeat("x", 1025)), over, text("small")})
	if err != nil {
		e.fatalf("the whole call failed: %v", err)
	}
	e.wantCode("a body of 1025 bytes", sent[0].Err, queue.CodeInvalidParameterValue)
	e.wantCode("body and attribute of 1025 bytes", sent[1].Err, queue.CodeInvalidParameterValue)
	if sent[2].Err != nil {
		e.errorf("a small message beside them: %v", sent[2].Err)
	}
}

func checkMegabyte(e *checkRun) {
	q := e.standard()
	// Escaped on the wire, each counts as one byte toward the limit.
	body := strings.Repeat("\"\n", 1<<19)
	e.send(q, text(body))
	if m := e.take(q); m.Body != body {
		e.errorf("the body of %d bytes came back as %d other ones", len(body), len(m.Body))
	}
	e.wantRefused("one byte more", q, []queue.Outgoing{text(body + "x")}, queue.CodeInvalidParameterValue,
		queue.CodeBatchRequestTooLong)
}

func checkAttributeRules(e *checkRun) {
	q := e.standard()
	for what, a := range map[string]queue.Attribute{
		"a name beginning with AWS.":   {Name: "AWS.x", Type: "String", Value: "v"},
		"a name beginning with amazon": {Name: "aMaZoN.x", Type: "String", Value: "v"},
		"a name ending in a dot":       {Name: "x.", Type: "String", Value: "v"},
		"a name with two dots":         {Name: "a..b", Type: "String", Value: "v"},
		"a name with a space":          {Name: "a b", Type: "String", Value: "v"},
		"a name of 257":                {Name: strings.Repeat("n", 257), Type: "String", Value: "v"},
		"an empty value":               {Name: "a", Type: "String", Value: ""},
		"an empty type":                {Name: "a", Type: "", Value: "v"},
		"an unknown type":              {Name: "a", Type: "Text", Value: "v"},
		"not a number":                 {Name: "a", Type: "Number", Value: "twelve"},
		"a name with a section sign":   {Name: "a§", Type: "String", Value: "v"},
		"a control character":          {Name: "a", Type: "String", Value: "a\x01"},
	} {
		e.wantRefused(what, q, []queue.Outgoing{{Body: "b", Attributes: []queue.Attribute{a}}},
			queue.CodeInvalidParameterValue, queue.CodeInvalidAttributeValue, queue.CodeMissingRequiredParameter)
	}

	e.wantEmpty("it was refused", q)
	letters := queue.Attribute{Name: "attr.1øßä", Type: "String", Value: "v"}
	e.send(q, queue.Outgoing{Body: "b", Attributes: []queue.Attribute{letters}})
	if m := e.take(q); m.Attribute(letters.Name) != "v" {
		e.errorf("an attribute with letters outside ASCII came back as %q", m.Attributes)
	}
}

func checkReceiveLimits(e *checkRun) {
	q := e.standard()
	for what, req := range map[string]queue.ReceiveRequest{
		"no messages":             {Max: 0, Wait: new(time.Duration)},
		"11 messages":             {Max: 11, Wait: new(time.Duration)},
		"a wait of 21 s":          {Max: 1, Wait: new(21 * time.Second)},
		"a visibility of 43201 s": {Max: 1, Wait: new(time.Duration), Visibility: new(43201 * time.Second)},
	} {
		_, err := q.Receive(e.ctx, req)
		e.wantCode(what, err, queue.CodeInvalidParameterValue)
	}
	if got := e.receive(q, 10, time.Second, nil); len(got) > 0 {
		e.errorf("an empty queue gave %s", bodies(got))
	}
}
