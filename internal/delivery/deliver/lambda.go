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
	most := len(ms)
	neverAlone := func(*queue.Message) bool { return false }
	return InParts(ms, l.fifo, neverAlone, func(part []*queue.Message) []queue.Result {
		return l.invoke(ctx, part, &most)
	})
}

// invoke hands the first messages of part to the function, as many as an event has room for and at most most, and
// returns their results. When the function refuses an event as too large, it lowers most and tries a smaller one.
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
	broken := map[string]queue.Result{} // by group, the first result that is not done
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
