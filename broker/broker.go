package broker

import (
	"context"
	"log/slog"
)

// Options configure a [Broker]. A nil *Options is valid.
type Options struct {
	// Region and AccountID appear in ARNs; the defaults are "us-east-1" and "000000000000".
	Region, AccountID string
	// SenderID is the SenderId of messages; the default is AccountID.
	SenderID string
	// NoWaits disables the 60-second waits after DeleteQueue and between PurgeQueue calls.
	NoWaits bool
	// Memory is the memory limit of the process in bytes; 0 means unlimited. A small value shrinks the caches.
	Memory int64
	// Logger defaults to [slog.Default].
	Logger *slog.Logger
	Events *Events

	vfs    string // "" means SQLite's default
	limits *memoryLimits
}

// Events are callbacks; each may be nil. They are called without locks held and must not block.
type Events struct {
	// DeadLettered is called after the redrive policy moved messages.
	DeadLettered func(from, to string, ids []string)
	// Expired is called after n messages expired.
	Expired func(name string, n int)
	// Removed is called after messages left a queue. ctx has the values of the caller's context, if any.
	Removed func(ctx context.Context, removed []Removal)
}

// Removal describes a removed message.
type Removal struct {
	Queue string
	// ID is "" if all messages of a queue were removed at once.
	ID       string
	Cause    Cause
	To       string // target of a move, or ""
	Receives int
}

// Cause is the reason a message left its queue.
type Cause string

// The causes of a removal.
const (
	CauseDone         Cause = "done"          // deleted by receipt handle
	CauseExpired      Cause = "expired"       // past its retention period or deadline
	CauseDeleted      Cause = "deleted"       // deleted otherwise, for example by a purge
	CauseDeadLettered Cause = "dead-lettered" // by the redrive policy or a worker
	CauseMoved        Cause = "moved"         // by Move or a move task
)

func (c Cause) counter(k *counters) *int64 {
	switch c {
	case CauseDone:
		return &k.Done
	case CauseExpired:
		return &k.Expired
	case CauseDeadLettered:
		return &k.DeadLettered
	case CauseMoved:
		return &k.MovedOut
	}
	return &k.Purged
}
