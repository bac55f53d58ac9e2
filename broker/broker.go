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

// Broker is a set of durable queues in one data directory.
// All methods are safe for concurrent use. Errors about a request are
// [*queue.Error].
type Broker struct{}

// Open opens the queues in dir (created with mode 0700 when missing).
// It returns an error wrapping [ErrInUse] when another process holds dir.
func Open(dir string, opts *Options) (*Broker, error) { panic("skeleton") }

// Close stops waiting receives (they return what they have, or
// queue.ErrClosed), commits what is pending and closes the files.
func (b *Broker) Close() error { panic("skeleton") }

// ARN returns the Amazon resource name of a queue of this broker.
func (b *Broker) ARN(name string) string { panic("skeleton") }

// CreateQueue creates a queue. attrs are SQS attribute names and values
// (nil for defaults). It succeeds without effect when the queue exists and
// every given attribute equals the current one; otherwise QueueNameExists.
func (b *Broker) CreateQueue(ctx context.Context, name string, attrs, tags map[string]string) error {
	panic("skeleton")
}

// DeleteQueue deletes a queue and all its messages; these count as purged.
func (b *Broker) DeleteQueue(ctx context.Context, name string) error { panic("skeleton") }

// PurgeQueue removes all messages of a queue, also delayed ones and those in
// flight, and returns how many there were.
func (b *Broker) PurgeQueue(ctx context.Context, name string) (int, error) { panic("skeleton") }

// ListQueues returns the names that begin with prefix, sorted.
func (b *Broker) ListQueues(prefix string) []string { panic("skeleton") }

// Attributes returns every attribute of a queue under its SQS name: the
// settings, QueueArn, CreatedTimestamp, LastModifiedTimestamp and the three
// ApproximateNumberOf counts, which are exact here.
func (b *Broker) Attributes(name string) (map[string]string, error) { panic("skeleton") }

// SetAttributes changes attributes of a queue; all or none.
func (b *Broker) SetAttributes(ctx context.Context, name string, attrs map[string]string) error {
	panic("skeleton")
}

// DeadLetterSources returns the names of the queues whose redrive policy
// points at name, sorted.
func (b *Broker) DeadLetterSources(name string) ([]string, error) { panic("skeleton") }

// Tags returns the queue's tags.
func (b *Broker) Tags(name string) (map[string]string, error) { panic("skeleton") }

// SetTags adds or replaces tags, and removes those named in remove.
func (b *Broker) SetTags(ctx context.Context, name string, add map[string]string, remove []string) error {
	panic("skeleton")
}

// Send accepts up to [queue.MaxBatch] messages. It returns one [queue.Sent]
// for each, in order, after they are on disk; entries may fail one by one.
// The error is for the whole call (no such queue, storage).
func (b *Broker) Send(ctx context.Context, name string, msgs []queue.Outgoing) ([]queue.Sent, error) {
	panic("skeleton")
}

// Receive returns up to req.Max visible messages and hides them. It waits up
// to req.Wait for a first one and wakes as soon as one is sent or becomes
// visible. A done ctx ends the wait without taking messages.
func (b *Broker) Receive(ctx context.Context, name string, req queue.ReceiveRequest) ([]queue.Message, error) {
	panic("skeleton")
}

// Delete removes the messages of the receipts, one error for each; nil
// entries succeeded. It returns nil when all did.
func (b *Broker) Delete(ctx context.Context, name string, receipts []string) []error {
	panic("skeleton")
}

// ChangeVisibility applies the changes, one error for each; nil when all
// succeeded.
func (b *Broker) ChangeVisibility(ctx context.Context, name string, changes []queue.VisibilityChange) []error {
	panic("skeleton")
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

// ChangeVisibility is [Broker.ChangeVisibility] on this queue.
func (q *Queue) ChangeVisibility(ctx context.Context, changes []queue.VisibilityChange) []error {
	return q.b.ChangeVisibility(ctx, q.name, changes)
}
