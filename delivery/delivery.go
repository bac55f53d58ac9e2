package delivery

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"tendril/envelope"
	"tendril/queue"
	"tendril/telemetry"
	"tendril/worker"
)

// Deliverer hands over the messages of one delivery and sets the result of each.
type Deliverer func(ctx context.Context, batch []*Message)

// Message is a message on its way to the target.
type Message struct {
	// Message is what is handed over. A stage may replace it by a changed copy.
	*queue.Message
	// Result says how the delivery ended.
	Result queue.Result
}

// Target is what messages are handed to: an app or a function. One that has a method
// DeliverBatch, as [deliver.Lambda] has, gets all messages of a delivery at once.
type Target interface {
	// Deliver hands over one message.
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil when the target accepts messages.
	Probe(ctx context.Context) error
}

// Options describe the deliveries from one queue. Only Target is required.
type Options struct {
	// Target takes the messages.
	Target Target
	// FIFO is true where the order within a message group counts.
	FIFO bool
	// Tracker counts the deliveries in flight; nil where nobody asks for them.
	Tracker *Tracker
	// Known reports whether the registry has a run of this id and path, or returns
	// [ErrUndecided]. nil trusts every message that says it is a run.
	Known func(ctx context.Context, id, path string) (bool, error)
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
		d = unwrap(d, opts)
	}
	d = recognizeRuns(d, opts)
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

// prepare calls ready for each message, which sets the result of one that cannot be
// handed over, and returns the others. Behind such a message the later ones of its
// group are held back where the order counts.
func prepare(batch []*Message, fifo bool, ready func(*Message) bool) []*Message {
	var stuck map[string]queue.Result // by group
	return slices.DeleteFunc(slices.Clone(batch), func(m *Message) bool {
		if behind, ok := stuck[m.GroupID]; ok {
			m.Result = behind
			return true
		}
		if ready(m) {
			return false
		}
		if fifo && m.GroupID != "" {
			if stuck == nil {
				stuck = map[string]queue.Result{}
			}
			stuck[m.GroupID] = queue.Result{Outcome: m.Result.Outcome, RetryAfter: m.Result.RetryAfter,
				Reason: "an earlier message of its group is not done", Unsent: true}
		}
		return true
	})
}
