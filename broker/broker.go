package broker

import (
	"context"
	"errors"
	"log/slog"

	"tendril/queue"
)

// ErrInUse means that another process has the data directory open.
var ErrInUse = errors.New("data directory is in use by another process")

// Options configure a [Broker]. A nil *Options is valid.
type Options struct {
	// Region and AccountID appear in ARNs; "us-east-1" and "000000000000"
	// when empty.
	Region, AccountID string
	// SenderID is the SenderId of every message; AccountID when empty.
	SenderID string
	// NoWaits drops the 60 s waits after DeleteQueue and between PurgeQueue
	// calls; false is what SQS does.
	NoWaits bool
	// Logger receives storage trouble; slog.Default when nil.
	Logger *slog.Logger
	// Events are the listeners; nil for none.
	Events *Events

	vfs    string        // SQLite's file system; "" is the ordinary one
	limits *memoryLimits // of what memory holds; nil for the ordinary ones
}

// Events are the broker's listeners. Every field may be nil. They are called
// without locks held and must not block.
type Events struct {
	// DeadLettered is called after messages were moved to a dead-letter queue
	// because their receive count was used up.
	DeadLettered func(from, to string, ids []string)
	// Expired is called after n messages of a queue passed their retention.
	Expired func(name string, n int)
}

// Queue returns a handle on one queue, which need not exist yet.
func (b *Broker) Queue(name string) *Queue { return &Queue{b, name} }

// Queue is one queue of a broker, for those who work with just one.
type Queue struct {
	b    *Broker
	name string
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// Send is [Broker.Send] on this queue.
func (q *Queue) Send(ctx context.Context, msgs []queue.Outgoing) ([]queue.Sent, error) {
	return q.b.Send(ctx, q.name, msgs)
}

// Receive is [Broker.Receive] on this queue.
func (q *Queue) Receive(ctx context.Context, req queue.ReceiveRequest) ([]queue.Message, error) {
	return q.b.Receive(ctx, q.name, req)
}

// Delete is [Broker.Delete] on this queue.
func (q *Queue) Delete(ctx context.Context, receipts []string) []error {
	return q.b.Delete(ctx, q.name, receipts)
}

// Expire is [Broker.Expire] on this queue.
func (q *Queue) Expire(ctx context.Context, receipts []string) []error {
	return q.b.Expire(ctx, q.name, receipts)
}

// ChangeVisibility is [Broker.ChangeVisibility] on this queue.
func (q *Queue) ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error {
	return q.b.ChangeVisibility(ctx, q.name, changes)
}
