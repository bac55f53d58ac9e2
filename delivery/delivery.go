package delivery

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"tendril/envelope"
	"tendril/queue"
	"tendril/telemetry"
	"tendril/worker"
)

// Options describe the deliveries from one queue. Only Target is required.
type Options struct {
	// Target takes the messages.
	Target Target
	// FIFO is true where the order within a message group counts.
	FIFO bool
	// Tracker counts the deliveries in flight; nil where nobody asks for them.
	Tracker *Tracker
	// Known is a [Registry]; nil trusts every message that says it is a run.
	Known Registry
	// Account returns who keeps account of scheduled runs; nil, or a nil result, for
	// nobody.
	Account func() RunAccount
	// SNS takes messages out of the envelopes of SNS.
	SNS bool
	// Payloads fetches what messages point to in S3; nil where no bucket is allowed.
	Payloads *envelope.Opener
	// Deadline returns the limit of a whole delivery, 0 for none; may be nil.
	Deadline func() time.Duration
	// Postponed reports that the payload of a message is not available; may be nil.
	Postponed func(id string, retryIn time.Duration, err error)
	// Begun is called when a message is about to be handed over; path is that of a
	// scheduled run, else "". May be nil.
	Begun func(path string)
	// Tracer makes the spans of deliveries; may be nil.
	Tracer *telemetry.Tracer
	// Logger gets what is worth knowing about a message; nil discards it.
	Logger *slog.Logger
}

// New puts the stages together, from the target to the worker.
func New(opts *Options) Deliverer {
	d := send(opts.Target)
	if opts.Tracer != nil { // directly around the request, whose headers tell of the span
		d = trace(d, opts.Tracer)
	}
	if opts.Begun != nil { // of what is really handed over
		d = announce(d, opts.Begun)
	}
	if opts.Account != nil { // likewise
		d = bookkeep(d, opts.Account)
	}
	if opts.SNS || opts.Payloads != nil { // not of scheduled runs
		d = unwrap(d, &contents{
			fifo: opts.FIFO, sns: opts.SNS, payloads: opts.Payloads, deadline: opts.Deadline, postponed: opts.Postponed,
			log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		})
	}
	d = recognizeRuns(d, opts.Known, opts.FIFO)
	if opts.Tracker != nil { // includes the time in which payloads are fetched
		d = opts.Tracker.track(d)
	}
	return d
}

// ForWorker returns the deliverer for a worker. It is a [worker.BatchDeliverer] where the
// target takes several messages at once.
func ForWorker(opts *Options) worker.Deliverer {
	one := single{New(opts), opts.Target}
	if _, ok := opts.Target.(batchTarget); ok {
		return batches{one}
	}
	return one
}

// single delivers one message at a time.
type single struct {
	deliver Deliverer
	target  Target
}

// Deliver hands one message over.
func (s single) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	one := Message{Message: m}
	s.deliver(ctx, []*Message{&one})
	return one.Result
}

// Probe returns nil when the target accepts messages.
func (s single) Probe(ctx context.Context) error { return s.target.Probe(ctx) }

// batches delivers several messages at once too.
type batches struct{ single }

// DeliverBatch hands several messages over in one delivery. A message that cannot be
// handed over at all holds up only the later ones of its FIFO group.
func (b batches) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	messages, batch := make([]Message, len(msgs)), make([]*Message, len(msgs))
	for i, m := range msgs {
		messages[i].Message, batch[i] = m, &messages[i]
	}
	b.deliver(ctx, batch)
	results := make([]queue.Result, len(msgs))
	for i := range messages {
		results[i] = messages[i].Result
	}
	return results
}
