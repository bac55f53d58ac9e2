package api

import (
	"time"
)

// MaxWait is how long a request may wait, except for hooks and deployments.
const MaxWait = 25 * time.Second

// MaxDeploy limits a deployment, including the last deliveries to the previous version.
const MaxDeploy = 15 * time.Minute

// RequestIDHeader is the response header with the request's ID, as in log lines and errors.
const RequestIDHeader = "X-Request-Id"

// MaxBody is the maximum size in bytes of a request body: ten messages of 1 MiB in total, with every byte escaped.
const MaxBody = 8 << 20

// Confirmation is the request body of a purge. Confirm must be the queue's name.
type Confirmation struct {
	Confirm string `json:"confirm,omitempty"`
	// Through is the last affected position, as in [Queue].Newest; 0 means no limit.
	Through int64 `json:"through,omitempty"`
}

// Reason is the request body of a pause or resumption. Reason has up to 200 bytes.
type Reason struct {
	Reason string `json:"reason"`
	This   bool   `json:"this,omitempty"` // only the answering instance, even with a fleet key
}

// MoveRequest is the request body of [Client.Move].
type MoveRequest struct {
	IDs []string `json:"ids"`
	To  string   `json:"to,omitempty"` // "" means the queue that each message was dead-lettered from
}

// Deletion is the request body of a deletion, by IDs or Filter.
type Deletion struct {
	IDs []string `json:"ids,omitempty"`
	// Filter starts a task that deletes selected dead letters; {} selects all.
	Filter *Selection `json:"filter,omitempty"`
	Rate   int        `json:"rate,omitempty"` // 1 to 500 per second; 0 for no limit
	// Confirm is the number of messages, typed by a person. It is required for more than one message.
	Confirm int64 `json:"confirm,omitempty"`
}

// Deleted is the response to a [Deletion].
type Deleted struct {
	Deleted int       `json:"deleted"`
	Task    *MoveTask `json:"task,omitempty"`
}

type (
	// Count maps "purged", "moved" or "deleted" to a number of messages.
	Count map[string]int

	// QueueList is the response to GET /api/v1/queues.
	QueueList struct {
		Queues []Queue `json:"queues"`
	}

	// Creation is the request body of [Client.CreateQueue].
	Creation struct {
		Name       string            `json:"name"`
		Attributes map[string]string `json:"attributes,omitempty"`
	}
	// Created is the response to a [Creation].
	Created struct {
		Name string `json:"name"`
		ARN  string `json:"arn"`
	}

	// Paused is the response when queues are paused or resumed.
	Paused struct {
		Paused   bool  `json:"paused"`
		Revision int64 `json:"revision,omitempty"` // of the desired state; 0 if only this instance changed
	}
	// TaskPaused is the response when a task is paused or resumed.
	TaskPaused struct {
		Task   string `json:"task"`
		Paused bool   `json:"paused"`
	}

	// DrainRequest is the request body of a drain. Wait is the maximum time until the response, such as "20s".
	DrainRequest struct {
		Wait string `json:"wait"`
	}
	// Drained is the response to a [DrainRequest].
	Drained struct {
		Drained bool `json:"drained"` // all messages are settled and the process is about to exit
	}

	// DeployRequest is the request body of [Client.Deploy].
	DeployRequest struct {
		// Path is a folder or an archive; "" for the current version's.
		Path string `json:"path"`
	}
)
