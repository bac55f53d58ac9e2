package broker

import (
	"time"

	"tendril/queue"
)

// State is the place of a stored message.
type State string

// The states of a message that a queue holds.
const (
	Visible  State = "visible"
	Delayed  State = "delayed"
	InFlight State = "inflight"
)

// Stored is a message as it lies in a queue, seen without receiving it.
type Stored struct {
	queue.Message        // ReceiptHandle is empty
	Queue         string // the queue that holds it
	State         State
	// Until is when a delayed or in-flight message becomes visible; zero for
	// a visible one.
	Until time.Time
	// DeadAt is when the message was dead-lettered; zero if it never was.
	DeadAt time.Time
}

// BrowseRequest selects messages to look at.
type BrowseRequest struct {
	// State restricts to one state; "" means all.
	State State
	// Match keeps messages whose body contains it; "" keeps all.
	Match string
	// After is the cursor of the previous page; "" starts at the oldest.
	After string
	// Limit is the page size, 1 to 1000; 0 means 100.
	Limit int
}

// Ledger accounts for every message. It always balances:
//
//	Sent + MovedIn = Done + DeadLettered + MovedOut + Expired + Purged + Live
//
// and for the sum over all queues, MovedIn = DeadLettered + MovedOut.
type Ledger struct {
	// Sent counts accepted sends (FIFO duplicates are not accepted twice).
	Sent int64 `json:"sent"`
	// Done counts deletes by receipt handle.
	Done int64 `json:"done"`
	// DeadLettered counts moves to a dead-letter queue by the redrive policy.
	DeadLettered int64 `json:"dead_lettered"`
	// MovedIn counts arrivals by dead-lettering or redrive; MovedOut counts
	// departures by redrive.
	MovedIn  int64 `json:"moved_in"`
	MovedOut int64 `json:"moved_out"`
	// Expired counts messages that passed their retention period.
	Expired int64 `json:"expired"`
	// Purged counts messages removed by an operator.
	Purged int64 `json:"purged"`
	// Live counts messages in the queue now: Visible + Delayed + InFlight.
	Live     int64 `json:"live"`
	Visible  int64 `json:"visible"`
	Delayed  int64 `json:"delayed"`
	InFlight int64 `json:"in_flight"`
}
