package broker

import "log/slog"

// Options configure a [Broker]. A nil *Options is valid.
type Options struct {
	// Region and AccountID appear in ARNs; the defaults are "us-east-1" and "000000000000".
	Region, AccountID string
	// SenderID is the SenderId of every message; AccountID by default.
	SenderID string
	// NoWaits disables the 60-second waits of SQS after DeleteQueue and between PurgeQueue calls.
	NoWaits bool
	// Memory is the number of bytes the whole process may use; 0 means no limit. It shrinks the caches if small.
	Memory int64
	// Logger receives storage problems; [slog.Default] if nil.
	Logger *slog.Logger
	// Events are the broker's callbacks; nil means none.
	Events *Events

	vfs    string        // SQLite VFS; "" means the default
	limits *memoryLimits // nil means the default
}

// Events are the broker's callbacks. Every field may be nil. They are called without locks held and must not block.
type Events struct {
	// DeadLettered is called after messages moved to a dead-letter queue because they exceeded its maximum receive
	// count.
	DeadLettered func(from, to string, ids []string)
	// Expired is called after n messages of a queue exceeded their retention.
	Expired func(name string, n int)
}
