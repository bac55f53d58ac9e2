package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tendril/queue"
)

// Queue is the set of queue methods that the suite calls.
type Queue interface {
	Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error)
	Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error)
	// Delete returns nil if all deletes succeeded, otherwise one error per receipt handle.
	Delete(ctx context.Context, receipts []string) []error
	// ChangeVisibility returns nil if all changes succeeded, otherwise one error per change.
	ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error
	Attributes(ctx context.Context) (map[string]string, error)
	SetAttributes(ctx context.Context, attrs map[string]string) error
	Purge(ctx context.Context) error
}

// Server creates queues.
type Server interface {
	// Create creates a queue; nil attrs are the defaults of SQS.
	Create(ctx context.Context, name string, attrs map[string]string) (Queue, error)
	// Handle returns a queue that may not exist.
	Handle(name string) Queue
}

type check func(e *checkRun)

type checkRun struct {
	suite          Suite
	ctx            context.Context
	server         Server
	expectsFailure bool // see [Suite.Differs]
	prefix         string
	queues         int
	short          time.Duration // longer in each repetition

	mu       sync.Mutex
	failures []string
	// validUntil is when the observed state may end, or zero.
	validUntil time.Time
}

type fatalFailure struct{}

// tooLate is the panic value of a check that was too slow to observe a state.
type tooLate struct{}

// inTime is false if the machine was too slow and the check must run again.
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
	c(e)
	return true
}

// validFor announces that the observed state, such as invisibility, lasts only for d. A check that fails later is
// repeated.
func (e *checkRun) validFor(d time.Duration) { e.validUntil = time.Now().Add(d) }

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

func (e *checkRun) endValidity() { e.validUntil = time.Time{} }

// renewValidity calls act, which must extend the state to at least d from now.
func (e *checkRun) renewValidity(d time.Duration, act func()) {
	until := time.Now().Add(d)
	act()
	e.checkValidity()
	e.validUntil = until
}

func (e *checkRun) checkValidity() {
	if !e.validUntil.IsZero() && !time.Now().Before(e.validUntil) {
		panic(tooLate{})
	}
}

func (e *checkRun) errorf(format string, args ...any) {
	e.checkValidity()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures = append(e.failures, fmt.Sprintf(format, args...))
}

// Only the check's goroutine may call fatalf.
func (e *checkRun) fatalf(format string, args ...any) {
	e.errorf(format, args...)
	panic(fatalFailure{})
}

func (e *checkRun) must(what string, err error) {
	if err != nil {
		e.fatalf("%s: %v", what, err)
	}
}

type attrs = map[string]string

func (e *checkRun) name(a attrs) string {
	e.queues++
	name := e.prefix + "-" + strconv.Itoa(e.queues)
	if a["FifoQueue"] == "true" {
		name += ".fifo"
	}
	return name
}

func (e *checkRun) create(a attrs, msgs ...queue.Outgoing) Queue {
	q, err := e.server.Create(e.ctx, e.name(a), a)
	if err != nil {
		e.fatalf("creating a queue with %v: %v", a, err)
	}
	if len(msgs) > 0 {
		e.send(q, msgs...)
	}
	return q
}

func (e *checkRun) standard(bodies ...string) Queue {
	var msgs []queue.Outgoing
	for _, body := range bodies {
		msgs = append(msgs, text(body))
	}
	return e.create(nil, msgs...)
}

func (e *checkRun) fifo(more attrs, msgs ...queue.Outgoing) Queue {
	a := attrs{"FifoQueue": "true"}
	maps.Copy(a, more)
	return e.create(a, msgs...)
}

func (e *checkRun) withDeadLetterQueue(maxReceives string, more attrs, msgs ...queue.Outgoing) (q, dead Queue) {
	dead = e.create(more)
	a := attrs{"RedrivePolicy": e.policy(dead, maxReceives)}
	maps.Copy(a, more)
	return e.create(a, msgs...), dead
}

// maxReceives is inserted unchanged and may be invalid.
func (e *checkRun) policy(dead Queue, maxReceives string) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%s}`, e.attribute(dead, "QueueArn"), maxReceives)
}

func (e *checkRun) attributes(q Queue) attrs {
	a, err := q.Attributes(e.ctx)
	e.must("asking for attributes", err)
	return a
}

func (e *checkRun) attribute(q Queue, name string) string { return e.attributes(q)[name] }

func text(body string) queue.Outgoing { return queue.Outgoing{Body: body} }

func grouped(group, dedup, body string) queue.Outgoing {
	return queue.Outgoing{Body: body, GroupID: group, DedupID: dedup}
}

func inGroup(bodies ...string) (msgs []queue.Outgoing) {
	for _, body := range bodies {
		msgs = append(msgs, grouped("g", body, body))
	}
	return msgs
}

func (e *checkRun) send(q Queue, msgs ...queue.Outgoing) []queue.Sent {
	sent, err := q.Send(e.ctx, msgs)
	e.must("sending", err)
	if len(sent) != len(msgs) {
		e.fatalf("sending %d messages gave %d results", len(msgs), len(sent))
	}
	for i, s := range sent {
		e.must(fmt.Sprintf("sending message %d of %d", i+1, len(msgs)), s.Err)
	}
	return sent
}

// wantRefused accepts errors of entries or of the call. With codes, the error must have one of them.
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

func refusal(a attrs, msgs []queue.Outgoing, codes ...string) check {
	return func(e *checkRun) { e.wantRefused("the send", e.create(a), msgs, codes...) }
}

func (e *checkRun) wantCode(what string, err error, codes ...string) {
	var rejected *queue.Error
	switch {
	case err == nil:
		e.errorf("%s: was accepted", what)
	case !errors.As(err, &rejected):
		e.errorf("%s: the error is not a *queue.Error: %v", what, err)
	case len(codes) > 0 && !slices.Contains(codes, rejected.Code):
		e.errorf("%s: code %s (%v), want %v", what, rejected.Code, err, codes)
	}
}

// soon returns SQS's maximum wait, because a server may be slow, or less if the check is expected to fail.
func (e *checkRun) soon() time.Duration {
	if e.expectsFailure {
		return max(5*time.Second, 3*e.short)
	}
	return longestWait
}

func (e *checkRun) receive(q Queue, most int, wait time.Duration, visibility *time.Duration) []queue.Message {
	messages, err := q.Receive(e.ctx, queue.ReceiveRequest{Max: most, Wait: &wait, Visibility: visibility})
	e.must("receiving", err)
	if len(messages) > most {
		e.fatalf("received %d messages, asked for %d", len(messages), most)
	}
	return messages
}

func (e *checkRun) receiveAll(q Queue, n int, visibility time.Duration) []queue.Message {
	var got []queue.Message
	for len(got) < n {
		part := e.receive(q, min(n-len(got), queue.MaxBatch), e.soon(), &visibility)
		if len(part) == 0 {
			e.endValidity()
			e.fatalf("received %d messages (%s), want %d", len(got), bodies(got), n)
		}
		got = append(got, part...)
	}
	return got
}

func (e *checkRun) receiveOne(q Queue, visibility time.Duration) queue.Message {
	return e.receiveAll(q, 1, visibility)[0]
}

func (e *checkRun) takeAll(q Queue, n int) []queue.Message { return e.receiveAll(q, n, time.Minute) }

func (e *checkRun) take(q Queue) queue.Message { return e.takeAll(q, 1)[0] }

func (e *checkRun) wantEmpty(why string, q Queue) {
	if got := e.receive(q, queue.MaxBatch, 0, nil); len(got) > 0 {
		e.fatalf("received %s: %s", bodies(got), why)
	}
}

func (e *checkRun) remove(q Queue, messages ...queue.Message) {
	e.must("deleting", errors.Join(q.Delete(e.ctx, receiptsOf(messages))...))
}

func receiptsOf(messages []queue.Message) (receipts []string) {
	for _, m := range messages {
		receipts = append(receipts, m.ReceiptHandle)
	}
	return receipts
}

func (e *checkRun) hideFor(q Queue, m queue.Message, d time.Duration) {
	e.must("changing the visibility to "+d.String(), e.change(q, m.ReceiptHandle, d))
}

func (e *checkRun) change(q Queue, receipt string, d time.Duration) error {
	return errors.Join(q.ChangeVisibility(e.ctx, []queue.VisibilityChange{{ReceiptHandle: receipt, Visibility: d}})...)
}

func (e *checkRun) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.ctx.Done():
	}
}

func bodies(messages []queue.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, fmt.Sprintf("%.40q", m.Body))
	}
	return fmt.Sprint(out)
}

func sortedByBody(messages []queue.Message) []queue.Message {
	return slices.SortedFunc(slices.Values(messages), func(a, b queue.Message) int { return strings.Compare(a.Body, b.Body) })
}

func (e *checkRun) wantNext(what string, q Queue, bodies ...string) {
	e.wantBodies(what, e.takeAll(q, len(bodies)), bodies...)
}

func (e *checkRun) wantBodies(what string, got []queue.Message, want ...string) {
	if !slices.EqualFunc(got, want, func(m queue.Message, body string) bool { return m.Body == body }) {
		e.errorf("%s: received %s, want %q", what, bodies(got), want)
	}
}
