package queuetest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"tendril/queue"
)

// exam is one run of one check: the server, and what went wrong so far. Its
// methods end the check at once when they cannot do what they are named for.
type checkRun struct {
	ctx            context.Context
	server         Server
	repeats        bool // see Suite
	uncountsUnread bool // see Suite
	prefix         string
	queues         int

	mu       sync.Mutex
	failures []string
	// valid is when what is being looked at changes by itself; zero for never.
	valid time.Time
}

// stopped is the panic by which a fatal fault ends a check.
type fatalFailure struct{}

// late is the panic by which a check ends that was too slow to see what it
// looks for.
type tooLate struct{}

// perform runs the check to its end, or to its first fatal fault. It returns
// false when the check must be run again because the machine was too slow.
func (e *checkRun) execute(c check) (inTime bool) {
	defer func() {
		switch r := recover().(type) {
		case nil, fatalFailure:
			inTime = true
		case tooLate:
		default:
			inTime = true
			e.errorf("the check panicked: %v\n%s", r, debug.Stack())
		}
	}()
	c.run(e)
	return true
}

// window tells that what is looked at from now on stays so only for d, as a
// message stays hidden. A fault that is seen later than that is none.
func (e *checkRun) validFor(d time.Duration) { e.valid = time.Now().Add(d) }

// settled ends a window.
func (e *checkRun) endValidity() { e.valid = time.Time{} }

// errorf notes a fault and goes on.
func (e *checkRun) errorf(format string, args ...any) {
	if !e.valid.IsZero() && !time.Now().Before(e.valid) {
		panic(tooLate{})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures = append(e.failures, fmt.Sprintf(format, args...))
}

// fatalf notes a fault and ends the check. Only its own goroutine may call it.
func (e *checkRun) fatalf(format string, args ...any) {
	e.errorf(format, args...)
	panic(fatalFailure{})
}

// attrs are queue attributes.
type attrs = map[string]string

// name returns a new queue name of the right kind.
func (e *checkRun) name(a attrs) string {
	e.queues++
	name := e.prefix + "-" + strconv.Itoa(e.queues)
	if a["FifoQueue"] == "true" {
		name += ".fifo"
	}
	return name
}

// create makes a new queue.
func (e *checkRun) create(a attrs) Queue {
	q, err := e.server.Create(e.ctx, e.name(a), a)
	if err != nil {
		e.fatalf("creating a queue with %v: %v", a, err)
	}
	return q
}

// fifo makes a new FIFO queue with more attributes, if any.
func (e *checkRun) fifo(more attrs) Queue {
	a := attrs{"FifoQueue": "true"}
	for k, v := range more {
		a[k] = v
	}
	return e.create(a)
}

// withDeadLetters makes a dead-letter queue, and a queue that sends messages
// there which were received most times.
func (e *checkRun) withDeadLetterQueue(most string, more attrs) (q, dead Queue) {
	dead = e.create(more)
	a := attrs{"RedrivePolicy": e.policy(dead, most)}
	for k, v := range more {
		a[k] = v
	}
	return e.create(a), dead
}

// policy is a redrive policy; most is written as it stands.
func (e *checkRun) policy(dead Queue, most string) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%s}`, e.attribute(dead, "QueueArn"), most)
}

func (e *checkRun) attribute(q Queue, name string) string {
	a, err := q.Attributes(e.ctx)
	if err != nil {
		e.fatalf("asking for attributes: %v", err)
	}
	return a[name]
}

// text is a message with nothing but a body.
func text(body string) queue.Outgoing { return queue.Outgoing{Body: body} }

// grouped is a FIFO message.
func grouped(group, dedup, body string) queue.Outgoing {
	return queue.Outgoing{Body: body, GroupID: group, DedupID: dedup}
}

// send sends messages that must be accepted.
func (e *checkRun) send(q Queue, msgs ...queue.Outgoing) []queue.Sent {
	sent, err := q.Send(e.ctx, msgs)
	if err != nil {
		e.fatalf("sending: %v", err)
	}
	if len(sent) != len(msgs) {
		e.fatalf("sending %d messages gave %d results", len(msgs), len(sent))
	}
	for i, s := range sent {
		if s.Err != nil {
			e.fatalf("sending message %d of %d: %v", i+1, len(msgs), s.Err)
		}
	}
	return sent
}

// refuse sends messages of which each must be refused, by itself or with the
// whole call, with one of the codes; no codes mean any.
func (e *checkRun) wantRefused(what string, q Queue, msgs []queue.Outgoing, codes ...string) {
	sent, err := q.Send(e.ctx, msgs)
	if err != nil {
		e.wantCode(what, err, codes...)
		return
	}
	for i, s := range sent {
		e.wantCode(fmt.Sprintf("%s (message %d)", what, i+1), s.Err, codes...)
	}
}

// wantCode notes a fault unless err is a refusal with one of the codes.
func (e *checkRun) wantCode(what string, err error, codes ...string) {
	var refused *queue.Error
	switch {
	case err == nil:
		e.errorf("%s: was accepted", what)
	case !errors.As(err, &refused):
		e.errorf("%s: the error is no *queue.Error: %v", what, err)
	case len(codes) > 0 && !slices.Contains(codes, refused.Code):
		e.errorf("%s: code %s (%v), want %v", what, refused.Code, err, codes)
	}
}

const (
	// soon bounds the wait for what is there, or will be in a moment.
	soon = 5 * time.Second
	// short is the least time that SQS can hide a message.
	short = time.Second
)

// receive asks once, waiting as long as wait says.
func (e *checkRun) receive(q Queue, most int, wait time.Duration, visibility *time.Duration) []queue.Message {
	messages, err := q.Receive(e.ctx, queue.ReceiveRequest{Max: most, Wait: &wait, Visibility: visibility})
	if err != nil {
		e.fatalf("receiving: %v", err)
	}
	if len(messages) > most {
		e.fatalf("received %d messages, asked for %d", len(messages), most)
	}
	return messages
}

// take receives exactly n messages that are there or soon will be, hidden for
// the given time; a standard queue may need more than one call for that.
func (e *checkRun) take(q Queue, n int, visibility time.Duration) []queue.Message {
	var got []queue.Message
	for len(got) < n {
		part := e.receive(q, min(n-len(got), queue.MaxBatch), soon, &visibility)
		if len(part) == 0 {
			e.endValidity() // not a matter of looking in time: it never came
			e.fatalf("received %d messages (%s), want %d", len(got), bodies(got), n)
		}
		got = append(got, part...)
	}
	return got
}

// one receives exactly one message, hidden for the given time.
func (e *checkRun) one(q Queue, visibility time.Duration) queue.Message {
	return e.take(q, 1, visibility)[0]
}

// none checks that nothing can be received now.
func (e *checkRun) wantEmpty(why string, q Queue) {
	if got := e.receive(q, queue.MaxBatch, 0, nil); len(got) > 0 {
		e.fatalf("received %s: %s", bodies(got), why)
	}
}

// remove deletes messages; it must succeed.
func (e *checkRun) remove(q Queue, messages ...queue.Message) {
	receipts := make([]string, len(messages))
	for i := range messages {
		receipts[i] = messages[i].ReceiptHandle
	}
	if err := errors.Join(q.Delete(e.ctx, receipts)...); err != nil {
		e.fatalf("deleting: %v", err)
	}
}

// hide changes the visibility of a received message; it must succeed.
func (e *checkRun) hide(q Queue, m queue.Message, d time.Duration) {
	if err := e.change(q, m.ReceiptHandle, d); err != nil {
		e.fatalf("changing the visibility to %s: %v", d, err)
	}
}

// change changes the visibility and returns the error of that one entry.
func (e *checkRun) change(q Queue, receipt string, d time.Duration) error {
	return errors.Join(q.ChangeVisibility(e.ctx, []queue.VisibilityChange{{ReceiptHandle: receipt, Visibility: d}})...)
}

// wait lets time pass, on the clock of the bubble or on the wall.
func (e *checkRun) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.ctx.Done():
	}
}

// bodies lists the bodies of messages, for faults.
func bodies(messages []queue.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, fmt.Sprintf("%.40q", m.Body))
	}
	return fmt.Sprint(out)
}

// wantBodies notes a fault unless the messages have these bodies in this order.
func (e *checkRun) wantBodies(what string, got []queue.Message, want ...string) {
	same := slices.EqualFunc(got, want, func(m queue.Message, body string) bool { return m.Body == body })
	if !same {
		e.errorf("%s: received %s, want %q", what, bodies(got), want)
	}
}
