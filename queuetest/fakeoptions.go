package queuetest

import (
	"time"

	"tendril/queue"
)

// FakeAction is an action of a [Fake].
type FakeAction string

// The actions of a fake.
const (
	FakeSend             FakeAction = "Send"
	FakeReceive          FakeAction = "Receive"
	FakeDelete           FakeAction = "Delete"
	FakeChangeVisibility FakeAction = "ChangeVisibility"
)

// FakeOptions configure a [Fake]. The zero value and nil are a standard queue without latency and dead-letter queue.
type FakeOptions struct {
	// FIFO delivers each message group in order; every message then needs a GroupID.
	FIFO bool
	// Visibility is the default visibility timeout; 0 means 30 s.
	Visibility time.Duration
	// MaxReceives is the maximum receive count before a message is dead-lettered; 0 means no limit.
	MaxReceives int
	// UncountsUnread makes a visibility change with Unread uncount its receive, like the embedded queue and unlike
	// SQS.
	UncountsUnread bool
	// Latency is the round-trip time of every call: half passes before the call takes effect, half after.
	Latency time.Duration
	// Fault, if set, returns the fault of each call not covered by [Fake.Fail]. It must be safe for concurrent use.
	Fault func(FakeCall) FakeFault
	// KeepLog records every call for [Fake.Log].
	KeepLog bool
}

// FakeFault is a fault of a call. The zero value is no fault.
type FakeFault struct {
	// Err is returned for the whole call, or for each of Entries. nil means that the call succeeds after Latency.
	Err error
	// Apply lets the call take effect nevertheless, as if its response were lost.
	Apply bool
	// Entries are the indexes of the failing batch entries; nil means all. Receives and sends fail as a whole.
	Entries []int
	// Latency is additional latency before the call takes effect.
	Latency time.Duration
}

// FakeCall is a call of a [Fake].
type FakeCall struct {
	Action FakeAction
	At     time.Time
	// Entries is the number of entries, or the maximum of a receive.
	Entries int
	// Receipts are the arguments of a delete, Changes of a visibility change.
	Receipts []string
	Changes  []queue.VisibilityChange
	// OpenReceives is the number of other receives in progress when the call arrived.
	OpenReceives int
}

// FakePlace is the state of a message of a [Fake].
type FakePlace string

// The states of a message.
const (
	FakeVisible  FakePlace = "visible"
	FakeDelayed  FakePlace = "delayed"
	FakeInFlight FakePlace = "in flight"
	FakeDeleted  FakePlace = "deleted"
	FakeDead     FakePlace = "dead-lettered"
)

// FakeMessage is a snapshot of a message of a [Fake].
type FakeMessage struct {
	ID, Body, GroupID string
	Place             FakePlace
	// Receives is the receive count.
	Receives int
	// VisibleAt is when the message becomes or became visible.
	VisibleAt time.Time
	SentAt    time.Time
}
