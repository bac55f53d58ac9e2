package queuetest

import (
	"errors"
	"strings"
	"time"

	"tendril/queue"
)

var queueChecks = map[string]check{
	"queue: the defaults of SQS": checkDefaults,
	"G1 queue: creating twice":   checkCreateTwice,
	"queue: names that SQS refuses": func(e *checkRun) {
		for _, name := range []string{"", "a b", "a.b", strings.Repeat("n", 81), "ümlaut", "standard.fifo"} {
			if _, err := e.server.Create(e.ctx, name, nil); err == nil {
				e.errorf("the name %q was accepted", name)
			}
		}
		if _, err := e.server.Create(e.ctx, e.prefix, attrs{"FifoQueue": "true"}); err == nil {
			e.errorf("a FIFO queue whose name does not end in .fifo was accepted")
		}
	},
	"queue: attributes out of range are refused": checkAttributeRanges,
	"queue: changed attributes hold": func(e *checkRun) {
		q := e.standard()
		e.must("setting attributes", q.SetAttributes(e.ctx, attrs{"DelaySeconds": "60", "VisibilityTimeout": "2"}))
		if d, v := e.attribute(q, "DelaySeconds"), e.attribute(q, "VisibilityTimeout"); d != "60" || v != "2" {
			e.errorf("DelaySeconds %s and VisibilityTimeout %s, want 60 and 2", d, v)
		}
		e.send(q, text("b"))
		e.wantEmpty("the queue now delays", q)
	},
	"G4 queue: counts are right at once":              checkCounts,
	"G3 queue: purge takes everything, once a minute": checkPurge,
	"queue: one that does not exist":                  checkAbsent,
	"G5 queue: KMS and SQS-managed encryption exclude each other": func(e *checkRun) {
		q := e.standard()
		if on := e.attribute(q, "SqsManagedSseEnabled"); on != "true" {
			e.errorf("SqsManagedSseEnabled is %q by default, want true", on)
		}
		e.wantCode("both at once", q.SetAttributes(e.ctx, attrs{"KmsMasterKeyId": "alias/aws/sqs",
			"SqsManagedSseEnabled": "true"}), queue.CodeInvalidAttributeValue, queue.CodeInvalidParameterValue)
		e.must("setting a key", q.SetAttributes(e.ctx, attrs{"KmsMasterKeyId": "alias/aws/sqs"}))
		if on := e.attribute(q, "SqsManagedSseEnabled"); on == "true" {
			e.errorf("SqsManagedSseEnabled stays true beside a key")
		}
	},
	"G6 queue: booleans in any case, returned in lower case": func(e *checkRun) {
		name := e.name(attrs{"FifoQueue": "true"})
		q, err := e.server.Create(e.ctx, name, attrs{"FifoQueue": "True", "ContentBasedDeduplication": "TRUE"})
		e.must("creating a queue", err)
		if a := e.attributes(q); a["FifoQueue"] != "true" || a["ContentBasedDeduplication"] != "true" {
			e.errorf("FifoQueue %q, ContentBasedDeduplication %q", a["FifoQueue"], a["ContentBasedDeduplication"])
		}
		e.must("setting an attribute", q.SetAttributes(e.ctx, attrs{"ContentBasedDeduplication": "False"}))
		if value := e.attribute(q, "ContentBasedDeduplication"); value != "false" {
			e.errorf("ContentBasedDeduplication %q, want false", value)
		}
	},
	"queue: a standard queue has no attributes for high throughput": func(e *checkRun) {
		for name, value := range (attrs{"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}) {
			_, err := e.server.Create(e.ctx, e.name(nil), attrs{name: value})
			e.wantCode(name, err, queue.CodeInvalidAttributeName)
		}
	},
}

func checkDefaults(e *checkRun) {
	a := e.attributes(e.standard())
	defaults := attrs{
		"VisibilityTimeout": "30", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0",
		"MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600",
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0",
		"ApproximateNumberOfMessagesDelayed": "0",
	}
	for name, want := range defaults {
		if a[name] != want {
			e.errorf("%s is %q, want %s", name, a[name], want)
		}
	}

	if arn := a["QueueArn"]; !strings.HasPrefix(arn, "arn:aws:sqs:") || !strings.Contains(arn, e.prefix) {
		e.errorf("QueueArn is %q", arn)
	}

	for _, name := range []string{"FifoQueue", "RedrivePolicy", "ContentBasedDeduplication"} {
		if value, ok := a[name]; ok {
			e.errorf("a standard queue without dead letters has %s %q", name, value)
		}
	}

	if a = e.attributes(e.fifo(nil)); a["FifoQueue"] != "true" || a["ContentBasedDeduplication"] != "false" {
		e.errorf("a FIFO queue has %v", a)
	}
}

func checkCreateTwice(e *checkRun) {
	name, a := e.name(nil), attrs{"DelaySeconds": "1", "VisibilityTimeout": "45"}
	for _, same := range []attrs{a, a, {"VisibilityTimeout": "45"}, nil} {
		if _, err := e.server.Create(e.ctx, name, same); err != nil {
			e.errorf("creating, with the same attributes, one of them, or none: %v: %v", same, err)
		}
	}
	_, err := e.server.Create(e.ctx, name, attrs{"DelaySeconds": "2"})
	e.wantCode("creating again with another delay", err, queue.CodeQueueNameExists)
}

func checkAttributeRanges(e *checkRun) {
	q := e.standard()
	for name, values := range map[string][]string{
		"VisibilityTimeout":             {"-1", "43201", "thirty", ""},
		"DelaySeconds":                  {"-1", "901"},
		"ReceiveMessageWaitTimeSeconds": {"-1", "21"},
		"MaximumMessageSize":            {"1023", "1048577"},
		"MessageRetentionPeriod":        {"59", "1209601"},
	} {
		for _, value := range values {
			e.wantCode(name+" "+value, q.SetAttributes(e.ctx, attrs{name: value}), queue.CodeInvalidAttributeValue,
				queue.CodeInvalidParameterValue)
		}
	}

	e.wantCode("an attribute that does not exist", q.SetAttributes(e.ctx, attrs{"Colour": "red"}),
		queue.CodeInvalidAttributeName)
	e.wantCode("a good and a bad one", q.SetAttributes(e.ctx, attrs{"DelaySeconds": "5", "VisibilityTimeout": "-1"}),
		queue.CodeInvalidAttributeValue, queue.CodeInvalidParameterValue)
	if d := e.attribute(q, "DelaySeconds"); d != "0" {
		e.errorf("DelaySeconds is %s after a refused change: all or none", d)
	}
}

func checkCounts(e *checkRun) {
	q := e.standard()
	e.send(q, text("1"), text("2"), text("3"), queue.Outgoing{Body: "4", Delay: new(15 * time.Minute)})
	e.wantCounts(q, "after the send", "3", "0", "1")
	got := e.takeAll(q, 2)
	e.wantCounts(q, "with two in flight", "1", "2", "1")
	e.remove(q, got[0])
	e.wantCounts(q, "with one of them deleted", "1", "1", "1")
	e.hideFor(q, got[1], 0)
	e.wantCounts(q, "with the other visible again", "2", "0", "1")
}

func (e *checkRun) wantCounts(q Queue, when, visible, inFlight, delayed string) {
	a := e.attributes(q)
	got := [3]string{a["ApproximateNumberOfMessages"], a["ApproximateNumberOfMessagesNotVisible"],
		a["ApproximateNumberOfMessagesDelayed"]}
	if want := [3]string{visible, inFlight, delayed}; got != want {
		e.errorf("%s: visible, in flight, delayed are %v, want %v", when, got, want)
	}
}

func checkPurge(e *checkRun) {
	q := e.standard()
	e.send(q, text("visible"), text("in flight"), queue.Outgoing{Body: "delayed", Delay: new(2 * e.short)})
	e.receiveOne(q, 2*e.short)
	e.must("purging", q.Purge(e.ctx))
	e.wantCode("a second purge", q.Purge(e.ctx), queue.CodePurgeQueueInProgress)
	e.wait(3 * e.short)
	e.wantEmpty("everything was purged", q)
	e.send(q, text("later"))
	e.wantNext("after the purge", q, "later")
}

func checkAbsent(e *checkRun) {
	q := e.server.Handle(e.name(nil))
	_, err := q.Send(e.ctx, []queue.Outgoing{text("b")})
	e.wantCode("sending", err, queue.CodeQueueDoesNotExist)
	_, err = q.Receive(e.ctx, queue.ReceiveRequest{Max: 1, Wait: new(time.Duration)})
	e.wantCode("receiving", err, queue.CodeQueueDoesNotExist)
	e.wantCode("deleting", errors.Join(q.Delete(e.ctx, []string{"receipt"})...), queue.CodeQueueDoesNotExist)
	e.wantCode("changing the visibility", e.change(q, "receipt", 0), queue.CodeQueueDoesNotExist)
	_, err = q.Attributes(e.ctx)
	e.wantCode("asking for attributes", err, queue.CodeQueueDoesNotExist)
	e.wantCode("purging", q.Purge(e.ctx), queue.CodeQueueDoesNotExist)
}
