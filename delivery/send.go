package delivery

import (
	"context"

	"tendril/queue"
	"tendril/telemetry"
)

// batchTarget is a [Target] that takes several messages at once.
type batchTarget interface {
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
}

// send hands messages to the target.
func send(to Target) Deliverer {
	batches, ok := to.(batchTarget)
	if !ok {
		return func(ctx context.Context, batch []*Message) {
			for _, m := range batch {
				m.Result = to.Deliver(ctx, m.Message)
			}
		}
	}
	return func(ctx context.Context, batch []*Message) {
		for i, result := range batches.DeliverBatch(ctx, queueMessages(batch)) {
			batch[i].Result = result
		}
	}
}

func queueMessages(batch []*Message) []*queue.Message {
	msgs := make([]*queue.Message, len(batch))
	for i, m := range batch {
		msgs[i] = m.Message
	}
	return msgs
}

// announce reports each message that is about to be handed over.
func announce(next Deliverer, begun func(path string)) Deliverer {
	return func(ctx context.Context, batch []*Message) {
		for _, m := range batch {
			path := ""
			if m.Run != nil {
				path = m.Run.Path
			}
			begun(path)
		}
		next(ctx, batch)
	}
}

// trace makes the spans of a delivery.
func trace(next Deliverer, tracer *telemetry.Tracer) Deliverer {
	return func(ctx context.Context, batch []*Message) {
		ctx, end := tracer.Begin(ctx, queueMessages(batch))
		next(ctx, batch)
		results := make([]queue.Result, len(batch))
		for i, m := range batch {
			results[i] = m.Result
		}
		end(results)
	}
}
