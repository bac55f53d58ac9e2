package delivery

import (
	"context"

	"tendril/internal/worker"
	"tendril/queue"
)

func stages(opts *Options) stage {
	d := send(opts)
	if opts.Tracer != nil { // so that the request carries the span
		d = trace(d, opts.Tracer)
	}
	if opts.Begun != nil {
		d = announce(d, opts.Begun)
	}
	if opts.Account != nil { // only runs that are sent are recorded
		d = recordRuns(d, opts.Account)
	}
	if opts.Paused != nil { // checked here, because the outer stages may wait
		d = unlessPaused(d, opts.Paused)
	}
	if opts.SNS || opts.Payloads != nil { // scheduled runs are not unwrapped
		d = unwrap(d, opts)
	}

	d = recognizeRuns(d, opts)
	if opts.Tracker != nil { // outermost, because fetching a payload counts as in flight
		d = opts.Tracker.track(d)
	}

	return d
}

// ForWorker returns a worker's deliverer: a [worker.BatchDeliverer] if the target accepts batches and OneByOne is not
// set.
func ForWorker(opts *Options) worker.Deliverer {
	one := single{opts.Target, stages(opts)}
	if _, ok := opts.Target.(batchTarget); ok && !opts.OneByOne {
		return batches{one: one}
	}
	return one
}

type single struct {
	target Target
	stages stage
}

func (s single) Probe(ctx context.Context) error { return s.target.Probe(ctx) }

func (s single) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	var one struct { // a single allocation
		message
		batch [1]*message
	}
	one.Message = withoutReason(m)
	one.batch[0] = &one.message
	s.stages(ctx, one.batch[:])
	return one.result
}

type batches struct{ one single }

func (b batches) Deliver(ctx context.Context, m *queue.Message) queue.Result {
	return b.one.Deliver(ctx, m)
}

func (b batches) Probe(ctx context.Context) error { return b.one.Probe(ctx) }

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
