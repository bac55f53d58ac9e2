package api

import (
	"time"
)

// MoveTask is the latest task that moves, or deletes, the messages of a dead-letter queue.
type MoveTask struct {
	// Status is RUNNING, COMPLETED, CANCELLED or FAILED, as in the SQS API.
	Status string `json:"status"`
	// Deletes is whether it deletes the messages, Filtered whether it means some of them only.
	Deletes  bool `json:"deletes,omitempty"`
	Filtered bool `json:"filtered,omitempty"`
	// Moved counts the messages moved or deleted so far, ToMove those that were meant at the start.
	Moved  int64 `json:"moved"`
	ToMove int64 `json:"to_move"`
	// Rate is the most messages moved per second; 0 means no limit.
	Rate int `json:"rate"`
	// Destination is an ARN; "" means the queue that each message was dead-lettered from.
	Destination   string    `json:"destination,omitempty"`
	FailureReason string    `json:"failure_reason,omitempty"`
	StartedAt     time.Time `json:"started_at"`
}

// RedriveRequest is the body of starting such a task.
type RedriveRequest struct {
	// To is the name of the queue to move to; "" means the one that each message was dead-lettered from.
	To string `json:"to,omitempty"`
	// Rate is 1 to 500 messages per second; 0 means no limit.
	Rate int `json:"rate,omitempty"`
	// Filter says which messages; all without it.
	Filter Selection `json:"filter,omitzero"`
	// Most is how many messages the caller saw to match: with more the request is refused. 0 for any number.
	Most int64 `json:"most,omitempty"`
}
