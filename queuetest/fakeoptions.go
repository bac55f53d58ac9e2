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

// FakeOptions configure a [Fake]. The zero value and nil mean a standard queue without latency or a dead-letter
// queue.
type FakeOptions struct {
	// FIFO delivers each message group in order. Every message then needs a GroupID.
	FIFO bool
	// Visibility is the default visibility timeout; 0 means 30 seconds.
	Visibility time.Duration
	// MaxReceives is the receive count after which a message is dead-lettered; 0 means no limit.
	MaxReceives int
	// UncountsUnread means that a visibility change with Unread uncounts the receive, as in the embedded queue. SQS
	// still counts it.
	UncountsUnread bool
	// Latency is the round-trip time of every call: half passes before the call takes effect, half after.
	Latency time.Duration
	// KeepLog makes the fake record every call for [Fake.Log].
	KeepLog bool
}

// FakeFault is a fault of a call. The zero value means no fault.
type FakeFault struct {
	// Err is returned for the whole call, or for each of Entries. If nil, the call succeeds after Latency.
	Err error
	// Apply means that the call takes effect nevertheless, as if only its response had been lost.
	Apply bool
	// Entries contains the indexes of the batch entries that fail; nil means all. Receives and sends fail as a whole.
	Entries []int
	// Latency is additional latency before the call takes effect.
	Latency time.Duration
}

// FakeCall is a call of a [Fake].
type FakeCall struct {
	Action FakeAction
	At     time.Time
	// Entries is the number of entries of a batch, or the maximum number of messages of a receive.
	Entries int
	// Receipts are set for a delete, and Changes for a visibility change.
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
	Receives          int
	// VisibleAt is the time at which the message became or becomes visible.
	VisibleAt time.Time
	SentAt    time.Time
}
