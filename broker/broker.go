package broker

import "log/slog"

// Options configure a [Broker]. A nil *Options is valid.
type Options struct {
	// Region and AccountID appear in ARNs; the defaults are "us-east-1" and "000000000000".
	Region, AccountID string
	// SenderID is the SenderId of every message; the default is AccountID.
	SenderID string
	// NoWaits disables the 60-second waits of SQS after DeleteQueue and between PurgeQueue calls.
	NoWaits bool
	// Memory is the limit of the whole process in bytes; 0 means none. A small value shrinks the caches.
	Memory int64
	// Logger defaults to [slog.Default].
	Logger *slog.Logger
	Events *Events

	vfs    string // "" means SQLite's default
	limits *memoryLimits
}

// Events are callbacks; each may be nil. They are called without locks held and must not block.
type Events struct {
	// DeadLettered is called after messages exceeded the maximum receive count and were moved.
	DeadLettered func(from, to string, ids []string)
	// Expired is called after n messages exceeded their retention period.
	Expired func(name string, n int)
}
