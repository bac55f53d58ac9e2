package api

import (
	"time"

	"tendril/queue"
)

// DefaultDeliveries is the default number of remembered deliveries.
const DefaultDeliveries = 10_000

// Delivery is an attempt to deliver a message to the app.
type Delivery struct {
	MessageID string `json:"message_id"`
	Queue     string `json:"queue"`
	// Outcome is "done", "failed", "unreached", "throttled", or one of the constants below.
	Outcome string `json:"outcome"`
	Status  int    `json:"status,omitempty"` // 0 without a response
	Reason  string `json:"reason,omitempty"`
	Answer  string `json:"answer,omitempty"` // start of an unsuccessful response
	// Attempt is ReceiveCount without receives in earlier queues and, if known, without those that made no attempt.
	Attempt      int `json:"attempt,omitempty"`
	ReceiveCount int `json:"receive_count,omitempty"`
	// DurationMS is the duration of the delivery. WaitMS is the time from sending the message to this delivery.
	DurationMS int64     `json:"duration_ms"`
	WaitMS     int64     `json:"wait_ms"`
	At         time.Time `json:"at"`
	// RetryAt is when the message becomes visible again, or zero if unknown. DeadLetterQueue is where the message goes
	// after its last attempt, or "".
	RetryAt         time.Time `json:"retry_at,omitzero"`
	DeadLetterQueue string    `json:"dead_letter_queue,omitempty"`
}

// DeliveryList is the response to GET /api/v1/deliveries.
type DeliveryList struct {
	Deliveries []Delivery `json:"deliveries"`
	Since      time.Time  `json:"since,omitzero"` // earlier deliveries may be missing
}

// Outcomes that describe the message instead of a finished delivery. For [InWork], DurationMS is the time since the
// delivery started. [MessageStored] means that a message found by a prefix of its ID is in a queue.
const (
	InWork              = "in work"
	MessageDeleted      = "deleted"
	MessageExpired      = "expired"
	MessageDeadLettered = "dead-lettered"
	MessageMoved        = "moved"
	MessageStored       = "stored"
)

// Tried reports whether the delivery was an attempt, rather than the return of a message because the app was not
// ready.
func (d *Delivery) Tried() bool {
	return d.Outcome != queue.Unreached.String() || !d.RetryAt.IsZero()
}

// Done reports whether the delivery succeeded.
func (d *Delivery) Done() bool { return d.Outcome == queue.Done.String() }

// Problem groups a queue's failed deliveries by reason.
type Problem struct {
	Queue         string    `json:"queue"`
	Reason        string    `json:"reason"`
	Count         int       `json:"count"` // between First and Last
	First         time.Time `json:"first"`
	Last          time.Time `json:"last"`
	LastMessageID string    `json:"last_message_id"`
}
