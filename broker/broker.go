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
func (b *Broker) Queue(name string) *Queue { return &Queue{b.core, name} }

// Queue sends to one queue of a broker and receives from it.
type Queue struct {
	b    *core
	name string
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

// live returns the queue for a call with n entries; 0 checks no number.
func (q *Queue) live(ctx context.Context, n int) (*liveQueue, error) {
	live, err := q.b.queues.get(q.name)
	if err == nil && n > 0 {
		err = queue.CheckEntries(n, "entry")
	}
	if err == nil {
		err = ctx.Err()
	}
	return live, err
}
