package broker

import "log/slog"

// Options configure a [Broker]. A nil *Options is valid.
type Options struct {
	// Region and AccountID appear in ARNs; the defaults are "us-east-1" and "000000000000".
	Region, AccountID string
	// SenderID is the SenderId of every message; the default is AccountID.
	SenderID string
	// NoWaits disables the 60-second waits that SQS requires after DeleteQueue and between PurgeQueue calls.
	NoWaits bool
	// Memory is the number of bytes the whole process may use; 0 means no limit. A small value shrinks the caches.
	Memory int64
	// Logger logs storage problems; nil means [slog.Default].
	Logger *slog.Logger
	// Events are the broker's callbacks; nil means none.
	Events *Events

	vfs    string        // SQLite VFS; "" means the default
	limits *memoryLimits // nil means the default limits
}

// Events are the broker's callbacks. Every field may be nil. They are called without locks held and must not block.
type Events struct {
	// DeadLettered is called after messages were moved to a dead-letter queue because they exceeded the maximum
	// receive count.
	DeadLettered func(from, to string, ids []string)
	// Expired is called after n messages of a queue exceeded their retention period.
	Expired func(name string, n int)
}
