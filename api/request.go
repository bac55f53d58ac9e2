package api

import (
	"time"
)

// MaxWait is the longest that one request waits, hooks and deployments apart.
const MaxWait = 25 * time.Second

// MaxBody bounds what a request may send, in bytes: ten messages that fill a
// megabyte together, with every byte of them escaped.
const MaxBody = 8 << 20

// Confirmation is the body of an act that cannot be undone.
type Confirmation struct {
	// Confirm is the name of the queue, as a person typed it.
	Confirm string `json:"confirm,omitempty"`
	// Through is the place of the newest message to remove, see [Queue].Newest; 0 for all.
	Through int64 `json:"through,omitempty"`
}

// Reason is the body of a pause.
type Reason struct {
	Reason string `json:"reason"`
}

// MoveRequest is the body of moving messages.
type MoveRequest struct {
	IDs []string `json:"ids"`
	// To is the name of the queue to move to; "" means the one that each
	// message was dead-lettered from.
	To string `json:"to,omitempty"`
}

// Deletion is the body of deleting messages: those of ids at once, or dead letters by a task.
type Deletion struct {
	IDs []string `json:"ids,omitempty"`
	// Filter says which dead letters, {} for all.
	Filter *Selection `json:"filter,omitempty"`
	// Rate is 1 to 500 messages per second of a task; 0 means no limit.
	Rate int `json:"rate,omitempty"`
	// Confirm is the number of messages, as a person typed it, where that is more than one.
	Confirm int64 `json:"confirm,omitempty"`
}

// Deleted says what became of a deletion.
type Deleted struct {
	// Deleted counts the messages of ids that there were.
	Deleted int `json:"deleted"`
	// Task is the task that deletes what a filter means.
	Task *MoveTask `json:"task,omitempty"`
}

// The bodies and answers of routes that are not shown anywhere else.
type (
	// Count is how many messages were "purged", "moved" or "deleted".
	Count map[string]int

	// QueueList is the answer of /api/v1/queues.
	QueueList struct {
		Queues []Queue `json:"queues"`
	}

	// Creation is the body of the creation of a queue.
	Creation struct {
		Name string `json:"name"`
		// Attributes are SQS attribute names and values.
		Attributes map[string]string `json:"attributes,omitempty"`
	}
	// Created is the answer of the creation of a queue.
	Created struct {
		Name string `json:"name"`
		ARN  string `json:"arn"`
	}

	// Paused is the answer of a pause of queues.
	Paused struct {
		Paused bool `json:"paused"`
	}
	// TaskPaused is the answer of a pause of a task.
	TaskPaused struct {
		Task   string `json:"task"`
		Paused bool   `json:"paused"`
	}

	// DrainRequest is the body of a drain.
	DrainRequest struct {
		Wait string `json:"wait"`
	}
	// Drained is the answer of a drain.
	Drained struct {
		// Drained is whether all work is settled and the process is ending.
		Drained bool `json:"drained"`
	}

	// DeployRequest is the body of a deployment.
	DeployRequest struct {
		// Path is that of a folder or an archive; "" is what runs now.
		Path string `json:"path"`
	}
)
