package broker

import "log/slog"

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
	// Memory is how many bytes the whole process may use; 0 means plenty. The caches are smaller where it is little.
	Memory int64
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
