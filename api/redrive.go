package api

import (
	"time"
)

// MoveTask is the latest task that moves or deletes a dead-letter queue's messages.
type MoveTask struct {
	// Status is RUNNING, COMPLETED, CANCELLED or FAILED, as in SQS.
	Status string `json:"status"`
	// Deletes means that messages are deleted, not moved. Filtered means that only selected ones are.
	Deletes  bool `json:"deletes,omitempty"`
	Filtered bool `json:"filtered,omitempty"`
	// Moved counts messages processed so far, ToMove those selected at the start.
	Moved  int64 `json:"moved"`
	ToMove int64 `json:"to_move"`
	Rate   int   `json:"rate"` // per second; 0 for no limit
	// Destination is an ARN; "" means the queue that each message was dead-lettered from.
	Destination   string    `json:"destination,omitempty"`
	FailureReason string    `json:"failure_reason,omitempty"`
	StartedAt     time.Time `json:"started_at"`
}

// RedriveRequest is the body that starts a redrive.
type RedriveRequest struct {
	To     string    `json:"to,omitempty"`   // "" means the queue that each message was dead-lettered from
	Rate   int       `json:"rate,omitempty"` // 1 to 500 per second; 0 for no limit
	Filter Selection `json:"filter,omitzero"`
	Most   int64     `json:"most,omitempty"` // the request is refused if more messages match; 0 means no maximum
}
