package worker

import (
	"context"
	"time"

	"tendril/queue"
)

// Queue is what the worker needs of a queue. All methods must be safe for
// concurrent use and return soon after their context is done.
type Queue interface {
	// Receive returns up to req.Max messages, after waiting up to req.Wait for
	// a first one. It must not repeat a receive whose answer was lost: each
	// receive counts against its messages.
	Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error)
	// Delete deletes the messages of up to [queue.MaxBatch] receipts. It
	// returns nil when all were, or one error for each (nil for those deleted).
	Delete(ctx context.Context, receipts []string) []error
	// Expire is Delete of messages past their retention. A queue that keeps an
	// account does not count them as done.
	Expire(ctx context.Context, receipts []string) []error
	// ChangeVisibility applies up to [queue.MaxBatch] changes, in order; its
	// result is that of Delete.
	ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error
}

// Deliverer delivers messages to the app. Both methods must be safe for
// concurrent use and return soon after their context is done.
type Deliverer interface {
	// Deliver delivers one message, at most once, and says how that ended. It
	// enforces its own time limits; the message stays hidden until it returns.
	// m must not be kept or changed. With [queue.Postponed] it vouches that it
	// tried nothing: then it is called again for the same receive.
	Deliver(ctx context.Context, m *queue.Message) queue.Result
	// Probe returns nil when the app accepts connections.
	Probe(ctx context.Context) error
}

// BatchDeliverer is a [Deliverer] that can also deliver several messages at
// once. It is used so when [Batch] asks for more than one message.
type BatchDeliverer interface {
	// DeliverBatch delivers up to [Batch].Size messages in one delivery, at
	// most once, and says how that ended for each, in their order. A message
	// without a result is failed. What is said of Deliver holds here too.
	DeliverBatch(ctx context.Context, msgs []*queue.Message) []queue.Result
	// Probe returns nil when the app accepts connections.
	Probe(ctx context.Context) error
}

// Limiter decides whether the app may be given one more message. Its methods
// must be safe for concurrent use and quick: they are called under a lock. Workers
// of a pool may have the same one; it must be comparable, as a pointer is.
type Limiter interface {
	// Acquire takes the right to begin one delivery of n messages at now. The permit is 0
	// for a refusal, which took nothing; wait says when to ask again (0: after the next
	// release) and reason why in a word ("rate", "concurrency", "breaker").
	Acquire(now time.Time, n int) (permit uint64, wait time.Duration, reason string)
	// Release gives a permit back, once, when its delivery has ended with these results.
	Release(permit uint64, now time.Time, results ...queue.Result)
	// Room returns how many deliveries may begin within the next d, as far as
	// it knows: receiving asks for no more. 0 stops receiving; reason is then why,
	// as in Acquire.
	Room(now time.Time, d time.Duration) (n int, reason string)
}
