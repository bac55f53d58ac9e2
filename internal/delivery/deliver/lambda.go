package deliver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tendril/queue"
)

const (
	// maxEvent is Lambda's limit for synchronous invocations: less than 6 MiB.
	maxEvent  = 6<<20 - 1
	probeTime = 10 * time.Second
)

// Invoker invokes a function. Its optional method Check(ctx) error checks whether the function can be invoked.
type Invoker interface {
	// Invoke invokes the function at most once, with its own timeout and response limit. It must return soon after ctx
	// is done, but may keep reading the payload, and must be safe for concurrent use.
	//
	// An error means that there is no complete response. The function may have run, unless a wrapped error has a method
	// Unsent() bool that returns true.
	Invoke(ctx context.Context, payload []byte) (queue.Invocation, error)
}

// Lambda delivers messages to a function like Lambda's event source mapping for SQS. It is safe for concurrent use.
type Lambda struct {
	invoker  Invoker
	source   string
	fifo     bool
	maxEvent int // bytes
}

// NewLambda makes no calls. queueARN is the event source. If it ends in .fifo, message groups keep their order.
func NewLambda(invoker Invoker, queueARN string) (*Lambda, error) {
	from, err := recordEnd(queueARN)
	if err != nil {
		return nil, err
	}
	return &Lambda{invoker: invoker, source: from, fifo: strings.HasSuffix(queueARN, ".fifo"), maxEvent: maxEvent}, nil
}

// Deliver invokes the function with one message.
func (l *Lambda) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return l.DeliverBatch(ctx, []*queue.Message{m})[0]
}

// DeliverBatch delivers ms in order, in as few events as possible. No message is in two events that run: an event
// rejected as too large does not run and is split. On a FIFO queue, a message that is not done prevents later messages
// of its group from being done.
func (l *Lambda) DeliverBatch(ctx context.Context, ms []*queue.Message) []queue.Result {
	most := len(ms)
	neverAlone := func(*queue.Message) bool { return false }
	return InParts(ms, l.fifo, neverAlone, func(part []*queue.Message) []queue.Result {
		return l.invoke(ctx, part, &most)
	})
}

func (l *Lambda) invoke(ctx context.Context, part []*queue.Message, most *int) []queue.Result {
	event, n := renderEvent(part[:min(len(part), *most)], l.source, l.maxEvent)
	if n == 0 {
		return []queue.Result{{Unsent: true, Reason: fmt.Sprintf(
			"too large for a function: its event has %d bytes of at most %d (store large bodies elsewhere and send a reference)",
			len(event), l.maxEvent)}}
	}
	if err := ctx.Err(); err != nil {
		return []queue.Result{{Outcome: queue.Unreached, Reason: "stopped before anything was sent", Err: err}}
	}

	start := time.Now()
	answered, err := l.invoker.Invoke(ctx, event)
	took := time.Since(start)
	if err == nil && tooLarge(&answered) && n > 1 {
		*most = n / 2
		return l.invoke(ctx, part, most)
	}

	ids := make([]string, n)
	for i, m := range part[:n] {
		ids[i] = m.ID
	}
	results := judgeCall(ctx, &answered, err, ids)
	broken := map[string]queue.Result{} // first unsuccessful result, by group
	for i := range results {
		r := &results[i]
		r.Duration = took
		group := part[i].GroupID
		switch first, found := broken[group]; {
		case found && r.Outcome == queue.Done:
			*r = queue.Result{Outcome: first.Outcome, RetryAfter: first.RetryAfter, Reason: behindReason, Status: r.Status,
				Duration: took}
		case !found && r.Outcome != queue.Done && l.fifo && group != "":
			broken[group] = *r
		}
	}
	return results
}

// Probe returns nil if the function can be invoked, as far as the Invoker can check.
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
