package queuetest

import (
	"time"

	"tendril/queue"
)

// FakeAction is an action that a [Fake] supports.
type FakeAction string

// The actions of a fake.
const (
	FakeSend             FakeAction = "Send"
	FakeReceive          FakeAction = "Receive"
	FakeDelete           FakeAction = "Delete"
	FakeChangeVisibility FakeAction = "ChangeVisibility"
)

// FakeOptions configure a [Fake]. The zero value and nil mean a standard queue without latency or dead-letter queue.
type FakeOptions struct {
	// FIFO keeps message groups in order. Every message then needs a GroupID.
	FIFO bool
	// Visibility is the default visibility timeout; 0 means 30 seconds.
	Visibility time.Duration
	// MaxReceives is the receive count after which a message is dead-lettered; 0 means never.
	MaxReceives int
	// UncountsUnread makes a visibility change with Unread uncount the receive, as in the embedded queue, unlike SQS.
	UncountsUnread bool
	// Latency is the round-trip time of a call, which takes effect after half of it.
	Latency time.Duration
	// KeepLog records calls for [Fake.Log].
	KeepLog bool
}

// FakeFault is a fault of a call. The zero value means no fault.
type FakeFault struct {
	// Err is the error of the whole call, or of each of Entries. If nil, the call succeeds after Latency.
	Err error
	// Apply lets the call take effect nevertheless, as if only its response was lost.
	Apply bool
	// Entries are the indexes of failing batch entries; nil means all. Receives and sends fail as a whole.
	Entries []int
	// Latency is additional latency before the call takes effect.
	Latency time.Duration
}

// FakeCall is a call of a [Fake].
type FakeCall struct {
	Action FakeAction
	At     time.Time
	// Entries is a batch's number of entries, or a receive's maximum number of messages.
	Entries int
	// Receipts belong to a delete, Changes to a visibility change.
	Receipts []string
	Changes  []queue.VisibilityChange
	// OpenReceives counts other receives in progress when the call arrived.
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
	Receives          int
	// VisibleAt is when the message became or becomes visible.
	VisibleAt time.Time
	SentAt    time.Time
}
