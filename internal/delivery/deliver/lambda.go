package deliver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tendril/queue"
)

const (
	// maxEvent is the largest event that Lambda takes from a caller who waits for
	// the function's end: it must stay under 6 MiB.
	maxEvent = 6<<20 - 1
	// probeTime bounds one probe.
	probeTime = 10 * time.Second
)

// Invoker runs a function with a payload and waits for its end. An Invoker may
// also have a method Check(ctx) error that says, without running the function,
// whether it could be run; [Lambda.Probe] then asks it.
type Invoker interface {
	// Invoke runs the function at most once. It enforces its own time limit, bounds
	// how much of an answer it reads, returns soon after ctx ended, and is safe for
	// concurrent use. The payload is the caller's to read only, and may be read by
	// the Invoker for a while after its return.
	//
	// An error means that there was no whole answer, so that the function may have
	// run. Only one in whose chain a method Unsent() bool returns true says that
	// no byte of the payload left.
	Invoke(ctx context.Context, payload []byte) (queue.Invocation, error)
}

// Lambda delivers messages to one function, as the events that an event source
// mapping for SQS makes of them. It may be used by any number of goroutines.
type Lambda struct {
	invoker  Invoker
	source   string // the part of a record that is the same in all, to its end
	fifo     bool
	maxEvent int // bytes
}

// NewLambda returns a deliverer for the function that invoker runs. Nothing is called
// yet. queueARN is the ARN of the queue that the messages are from, such as
// arn:aws:sqs:us-east-1:123456789012:jobs. The function is told it and its region. With
// a name that ends in .fifo the messages of a group keep their order.
func NewLambda(invoker Invoker, queueARN string) (*Lambda, error) {
	from, err := recordEnd(queueARN)
	if err != nil {
		return nil, err
	}
	return &Lambda{invoker: invoker, source: from, fifo: strings.HasSuffix(queueARN, ".fifo"), maxEvent: maxEvent}, nil
}

// Deliver hands m alone to the function: [Lambda.DeliverBatch] for one message.
func (l *Lambda) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return l.DeliverBatch(ctx, []*queue.Message{m})[0]
}

// DeliverBatch hands ms to the function in their order, in one event, or, where
// that would be too large, in several one after the other. It returns one result
// for each message. No message is in more than one event that ran; what was
// refused as too large has not run, and goes out again in smaller parts.
//
// On a FIFO queue nothing of a group is done that comes after a message of it
// which is not.
func (l *Lambda) DeliverBatch(ctx context.Context, ms []*queue.Message) []queue.Result {
	b := &batch{lambda: l, messages: ms, results: make([]queue.Result, len(ms)), most: len(ms),
		stopped: map[string]queue.Result{}}
	for next := 0; next < len(ms); {
		next = b.deliver(ctx, next)
	}
	return b.results
}

// Probe returns nil when the function could be run, as far as the Invoker can
// tell without running it; always nil if it has no way to. The error says why not
// and what to do.
func (l *Lambda) Probe(ctx context.Context) error {
	checker, ok := l.invoker.(interface {
		Check(ctx context.Context) error
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return checker.Check(ctx)
}

// batch is one delivery of several messages on its way.
type batch struct {
	lambda   *Lambda
	messages []*queue.Message
	results  []queue.Result
	most     int // messages in one event
	// stopped holds, per FIFO group, what the messages behind its first one that
	// is not done come to.
	stopped map[string]queue.Result
}

// deliver makes and sends the event that begins with message number from, and
// returns where the next one begins.
func (b *batch) deliver(ctx context.Context, from int) (next int) {
	event, part, next := b.collect(from)
	if len(part) == 0 {
		return next
	}
	if ctx.Err() != nil {
		b.settleRest(from, queue.Result{Outcome: queue.Unreached, Reason: "stopped before anything was sent", Err: ctx.Err()})
		return len(b.messages)
	}
	start := time.Now()
	answered, err := b.lambda.invoker.Invoke(ctx, event)
	took := time.Since(start)
	if err == nil && tooLarge(&answered) && len(part) > 1 {
		b.most = len(part) / 2
		return part[0]
	}
	ids := make([]string, len(part))
	for i, place := range part {
		ids[i] = b.messages[place].ID
	}
	results := judgeCall(ctx, &answered, err, ids)
	for i, place := range part {
		results[i].Duration = took
		b.settle(place, results[i])
	}
	if first := results[0]; first.Outcome == queue.Throttled || first.Outcome == queue.Unreached {
		// The function takes nothing: the others would only be refused as well.
		b.settleRest(next, first)
		return len(b.messages)
	}
	return next
}

// collect renders the event that begins with message number from, and returns the
// places of the messages in it. What cannot be sent is settled at once.
func (b *batch) collect(from int) (event []byte, part []int, next int) {
	l := b.lambda
	event = append(make([]byte, 0, b.estimate(from)), eventStart...)
	for next = from; next < len(b.messages) && len(part) < b.most; next++ {
		m := b.messages[next]
		if behind, ok := b.stopped[m.GroupID]; ok {
			b.results[next] = behind
			continue
		}
		before := len(event)
		if len(part) > 0 {
			event = append(event, ',')
		}
		event = appendRecord(event, m, l.source)
		if len(event)+len(eventEnd) <= l.maxEvent {
			part = append(part, next)
			continue
		}
		size := len(event) + len(eventEnd)
		event = event[:before]
		if len(part) > 0 {
			break // it begins the next one
		}
		b.settle(next, queue.Result{Unsent: true, Reason: fmt.Sprintf(
			"too large for a function: its event has %d bytes of at most %d (store large bodies elsewhere and send a reference)",
			size, l.maxEvent)})
	}
	return append(event, eventEnd...), part, next
}

// estimate is the room that an event is likely to need.
func (b *batch) estimate(from int) int {
	size := len(eventStart) + len(eventEnd)
	for _, m := range b.messages[from:min(from+b.most, len(b.messages))] {
		size += recordSize(m)
	}
	return min(size, b.lambda.maxEvent+1)
}

// settle notes the result of the message at place, or what its group has come to.
func (b *batch) settle(place int, r queue.Result) {
	m := b.messages[place]
	behind, isBehind := b.stopped[m.GroupID]
	if isBehind && r.Outcome == queue.Done {
		behind.Duration, behind.Status, behind.Unsent = r.Duration, r.Status, false
		r = behind
	}
	b.results[place] = r
	if r.Outcome != queue.Done && !isBehind && b.lambda.fifo && m.GroupID != "" {
		b.stopped[m.GroupID] = queue.Result{Outcome: r.Outcome, RetryAfter: r.RetryAfter,
			Reason: "an earlier message of its group is not done", Unsent: r.Outcome == queue.Failed}
	}
}

// settleRest gives the messages from that place on one result: none was sent.
func (b *batch) settleRest(from int, r queue.Result) {
	r.Duration = 0
	for i := from; i < len(b.messages); i++ {
		b.results[i] = r
	}
}
