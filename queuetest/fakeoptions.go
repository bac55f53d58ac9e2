package queuetest

import (
	"time"

	"tendril/queue"
)

// FakeAction names one action of a [Fake].
type FakeAction string

// The actions of a fake, for its counts and faults.
const (
	FakeSend             FakeAction = "Send"
	FakeReceive          FakeAction = "Receive"
	FakeDelete           FakeAction = "Delete"
	FakeChangeVisibility FakeAction = "ChangeVisibility"
)

// FakeOptions configure a [Fake]. The zero value, and nil, are valid: a standard queue
// that answers at once and has no dead-letter queue.
type FakeOptions struct {
	// FIFO delivers each message group in order; every message then needs a GroupID.
	// There is no deduplication.
	FIFO bool
	// Visibility is the visibility timeout of receives that do not set one; 0 means
	// 30 s.
	Visibility time.Duration
	// MaxReceives is the number of receives after which the next one dead-letters the
	// message; 0 means never.
	MaxReceives int
	// UncountsUnread makes a visibility change with Unread uncount its receive, as the
	// embedded queue does and SQS does not.
	UncountsUnread bool
	// Latency is the round-trip time of every call: half of it passes before the call
	// takes effect, half before it returns.
	Latency time.Duration
	// Fault, if set, returns the fault of each call that [Fake.Fail] does not cover. It
	// must be safe for concurrent use.
	Fault func(FakeCall) FakeFault
	// KeepLog keeps every call for [Fake.Log].
	KeepLog bool
}

// FakeFault is a fault of one call. The zero value is not a fault.
type FakeFault struct {
	// Err is returned for the whole call, or for each of Entries. nil means that the
	// call succeeds after Latency.
	Err error
	// Apply lets the call take effect nevertheless, as if only its answer were lost.
	Apply bool
	// Entries are the indexes of the batch entries that fail; nil means all. Receives
	// and sends fail as a whole.
	Entries []int
	// Latency is an additional delay before the call takes effect.
	Latency time.Duration
}

// FakeCall is one call of a [Fake].
type FakeCall struct {
	Action FakeAction
	// At is when the call arrived.
	At time.Time
	// Entries is the number of entries, or the maximum of a receive.
	Entries int
	// Receipts are the arguments of a delete, Changes those of a visibility change.
	Receipts []string
	Changes  []queue.VisibilityChange
	// OpenReceives is how many other receives were open when the call arrived.
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

// FakeMessage is a snapshot of one message of a [Fake].
type FakeMessage struct {
	ID, Body, GroupID string
	Place             FakePlace
	// Receives is how often it was received.
	Receives int
	// VisibleAt is when it becomes or became visible.
	VisibleAt time.Time
	SentAt    time.Time
}
