package api

import (
	"time"
)

// MaxWait limits how long a request waits, except for hooks and deployments.
const MaxWait = 25 * time.Second

// MaxBody is in bytes: ten messages of 1 MiB in total, with every byte escaped.
const MaxBody = 8 << 20

// Confirmation is the body of an irreversible action.
type Confirmation struct {
	Confirm string `json:"confirm,omitempty"`
	// Through is a position as in [Queue].Newest; newer messages stay. 0 means no limit.
	Through int64 `json:"through,omitempty"`
}

// Reason is the body of a pause. It is limited to 200 bytes.
type Reason struct {
	Reason string `json:"reason"`
	This   bool   `json:"this,omitempty"` // pause on the answering instance only, even if a fleet key is set
}

// MoveRequest is the body of a move.
type MoveRequest struct {
	IDs []string `json:"ids"`
	To  string   `json:"to,omitempty"` // "" means the queue that each message was dead-lettered from
}

// Deletion is the body of a deletion, with either IDs or Filter.
type Deletion struct {
	IDs []string `json:"ids,omitempty"`
	// Filter starts a task that deletes the selected dead letters; {} selects all.
	Filter *Selection `json:"filter,omitempty"`
	Rate   int        `json:"rate,omitempty"` // 1 to 500 per second; 0 means no limit
	// Confirm is the number of messages as typed by a person, required for more than one.
	Confirm int64 `json:"confirm,omitempty"`
}

// Deleted is the answer to a deletion.
type Deleted struct {
	Deleted int       `json:"deleted"`
	Task    *MoveTask `json:"task,omitempty"`
}

type (
	// Count maps "purged", "moved" or "deleted" to a number of messages.
	Count map[string]int

	// QueueList is the answer to GET /api/v1/queues.
	QueueList struct {
		Queues []Queue `json:"queues"`
	}

	// Creation is the body of a queue's creation.
	Creation struct {
		Name       string            `json:"name"`
		Attributes map[string]string `json:"attributes,omitempty"`
	}
	// Created is the answer to a queue's creation.
	Created struct {
		Name string `json:"name"`
		ARN  string `json:"arn"`
	}

	// Paused is the answer when queues are paused or resumed.
	Paused struct {
		Paused   bool  `json:"paused"`
		Revision int64 `json:"revision,omitempty"` // of the desired state; 0 if only this instance changed
	}
	// TaskPaused is the answer when a task is paused or resumed.
	TaskPaused struct {
		Task   string `json:"task"`
		Paused bool   `json:"paused"`
	}

	// DrainRequest is the body of a drain.
	DrainRequest struct {
		Wait string `json:"wait"`
	}
	// Drained is the answer to a drain.
	Drained struct {
		Drained bool `json:"drained"` // all messages are settled and the process is about to exit
	}

	// DeployRequest is the body of a deployment.
	DeployRequest struct {
		// Path names a folder or an archive; "" means the current version.
		Path string `json:"path"`
	}
)
