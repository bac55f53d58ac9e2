package queue

import "time"

// Ledger counts what happened to the messages of a queue. It always balances:
//
//	Sent + MovedIn = Done + DeadLettered + MovedOut + Expired + Purged + Live
//
// Summed over all queues, MovedIn = DeadLettered + MovedOut.
type Ledger struct {
	// Sent counts accepted messages, excluding FIFO duplicates.
	Sent int64 `json:"sent"`
	// Done counts deletes by receipt handle.
	Done int64 `json:"done"`
	// DeadLettered counts messages dead-lettered by the redrive policy or a worker.
	DeadLettered int64 `json:"dead_lettered"`
	// MovedIn counts messages moved to this queue, including dead letters. MovedOut counts messages moved to
	// another queue, except dead letters.
	MovedIn  int64 `json:"moved_in"`
	MovedOut int64 `json:"moved_out"`
	// Expired counts messages past their retention period or deadline.
	Expired int64 `json:"expired"`
	// Purged counts messages removed otherwise, for example by a purge.
	Purged int64 `json:"purged"`
	// Live = Visible + Delayed + InFlight + Damaged.
	Live     int64 `json:"live"`
	Visible  int64 `json:"visible"`
	Delayed  int64 `json:"delayed"`
	InFlight int64 `json:"in_flight"`
	// Damaged counts messages that failed their checksum and are not delivered.
	Damaged int64 `json:"damaged,omitempty"`
}

// Selection selects the messages that meet all its conditions; the zero value selects all.
type Selection struct {
	// IDs are message IDs; nil matches all.
	IDs []string `json:"ids,omitempty"`
	// Match is a substring of the body.
	Match string `json:"match,omitempty"`
	// Attribute is a message attribute's name; an empty Value matches any.
	Attribute string `json:"attribute,omitempty"`
	Value     string `json:"value,omitempty"`
	// DeadSince (inclusive) and DeadUntil (exclusive) bound the time of dead-lettering.
	DeadSince time.Time `json:"dead_since,omitzero"`
	DeadUntil time.Time `json:"dead_until,omitzero"`
	// Reason is as in [ReasonGroup]; nil matches any.
	Reason *string `json:"reason,omitempty"`
	// Through is the last matching position in the queue; 0 means no limit.
	Through int64 `json:"through,omitempty"`
}

// IsZero reports whether s selects all messages.
func (s *Selection) IsZero() bool {
	return s.IDs == nil && s.Match == "" && s.Attribute == "" && s.DeadSince.IsZero() && s.DeadUntil.IsZero() &&
		s.Reason == nil && s.Through == 0
}

// ReasonGroup is a group of messages in a queue that last failed for the same reason.
type ReasonGroup struct {
	// Reason is the result of [FailureGroup], such as "HTTP 422 no customer #"; "" without attempts.
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	// First and Last are the times when the oldest and newest message were dead-lettered or, in other queues, last
	// failed; zero without attempts.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Hours counts the messages by hour of that time; the last element is the current hour.
	Hours [24]int `json:"hours"`
}
