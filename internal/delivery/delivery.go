package delivery

import (
	"context"

	"tendril/internal/worker"
	"tendril/queue"
)

// stages puts the stages together, from the target to the worker.
func stages(opts *Options) stage {
	d := send(opts)
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
	one := single{opts.Target, stages(opts)}
	if _, ok := opts.Target.(batchTarget); ok && !opts.OneByOne {
		return batches{one: one}
	}
	return one
}

// single delivers one message at a time.
type single struct {
	target Target
	stages stage
}

// Probe asks the target.
func (s single) Probe(ctx context.Context) error { return s.target.Probe(ctx) }

// Deliver hands one message over.
func (s single) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	one := message{Message: withoutReason(m)}
	s.stages(ctx, []*message{&one})
	return one.result
}

// batches delivers several messages at once too.
type batches struct{ one single }

// Deliver hands one message over.
func (b batches) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return b.one.Deliver(ctx, m)
}

// Probe asks the target.
func (b batches) Probe(ctx context.Context) error { return b.one.Probe(ctx) }

// DeliverBatch hands several messages over in one delivery. A message that cannot be
// handed over at all holds up only the later ones of its FIFO group.
func (b batches) DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result {
	batch := make([]*message, len(msgs))
	for i, m := range msgs {
		batch[i] = &message{Message: withoutReason(m)}
	}
	b.one.stages(ctx, batch)

	results := make([]queue.Result, len(msgs))
	for i, m := range batch {
		results[i] = m.result
	}
	return results
}
