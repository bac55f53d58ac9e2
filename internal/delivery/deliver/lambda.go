package deliver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tendril/queue"
)

const (
	// Lambda's payload limit of a synchronous invocation, in bytes: less than 6 MiB.
	maxEvent  = 6<<20 - 1
	probeTime = 10 * time.Second
)

// Invoker invokes a function. Its optional method Check(ctx) error checks whether it can be invoked.
type Invoker interface {
	// Invoke invokes the function at most once, with its own timeout and response limit. It must return soon after
	// ctx is done, but may keep reading the payload, and must be safe for concurrent use. If it waits first and paused
	// then returns true, it should return an error instead of invoking the function. paused does not block.
	//
	// An error means that there is no complete response. The function may have run, unless a wrapped error has a
	// method Unsent() bool that returns true.
	Invoke(ctx context.Context, payload []byte, paused func() bool) (queue.Invocation, error)
}

// Lambda delivers messages to a function like Lambda's event source mapping for SQS. It is safe for concurrent use.
type Lambda struct {
	invoker  Invoker
	source   string
	fifo     bool
	maxEvent int // bytes
	paused   func() bool
}

// NewLambda returns a Lambda without calling the function. queueARN is the event source; if it ends in .fifo, message
// groups keep their order. paused is as in [Options].
func NewLambda(invoker Invoker, queueARN string, paused func() bool) (*Lambda, error) {
	from, err := recordEnd(queueARN)
	if err != nil {
		return nil, err
	}
	return &Lambda{invoker: invoker, source: from, fifo: queue.IsFIFO(queueARN), maxEvent: maxEvent,
		paused: orNever(paused)}, nil
}

// Deliver invokes the function with one message.
func (l *Lambda) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return l.DeliverBatch(ctx, []*queue.Message{m})[0]
}

// DeliverBatch delivers ms in order, in as few events as possible. An event that the service rejects as too large is
// split. No message is in two events that may have run. On a FIFO queue, an unfinished message prevents later ones of
// its group from being done.
func (l *Lambda) DeliverBatch(ctx context.Context, ms []*queue.Message) []queue.Result {
	perEvent := len(ms)
	neverAlone := func(*queue.Message) bool { return false }
	return InParts(ms, l.fifo, neverAlone, func(part []*queue.Message) []queue.Result {
		return l.invoke(ctx, part, &perEvent)
	})
}

// invoke delivers up to *perEvent messages, and reduces *perEvent if the service rejects the event as too large.
func (l *Lambda) invoke(ctx context.Context, part []*queue.Message, perEvent *int) []queue.Result {
	event, n := renderEvent(part[:min(len(part), *perEvent)], l.source, l.maxEvent)
	if n == 0 {
		return []queue.Result{{Unsent: true, Reason: fmt.Sprintf(
			"too large for a function: its event has %d bytes of at most %d (store large bodies elsewhere and send a reference)",
			len(event), l.maxEvent)}}
	}
	if err := ctx.Err(); err != nil {
		return []queue.Result{{Outcome: queue.Unreached, Reason: "stopped before anything was sent", Err: err}}
	}
	if l.paused() {
		return slices.Repeat([]queue.Result{Paused()}, len(part))
	}

	start := time.Now()
	response, err := l.invoker.Invoke(ctx, event, l.paused)
	took := time.Since(start)
	if err == nil && tooLarge(&response) && n > 1 {
		*perEvent = n / 2
		return l.invoke(ctx, part, perEvent)
	}
	if isUnsent(err) && l.paused() {
		return slices.Repeat([]queue.Result{Paused()}, len(part))
	}

	results := judgeCall(ctx, &response, err, messageIDs(part[:n]))
	if l.fifo {
		failBehind(part, results)
	}
	for i := range results {
		results[i].Duration = took
	}
	return results
}

// failBehind gives successes the outcome of the first unfinished message before them in their group.
func failBehind(part []*queue.Message, results []queue.Result) {
	unfinished := map[string]queue.Result{}
	for i := range results {
		r, group := &results[i], part[i].GroupID
		first, found := unfinished[group]
		switch {
		case found && r.Outcome == queue.Done:
			*r = queue.Result{Outcome: first.Outcome, RetryAfter: first.RetryAfter, Reason: behindReason, Status: r.Status}
		case !found && r.Outcome != queue.Done && group != "":
			unfinished[group] = *r
		}
	}
}

// Probe returns nil if the function can be invoked, or if the Invoker has no method Check.
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
