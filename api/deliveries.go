package api

import (
	"time"

	"tendril/queue"
)

// DefaultDeliveries is how many deliveries are remembered unless told.
const DefaultDeliveries = 10_000

// Delivery is one attempt at handing a message to the app.
type Delivery struct {
	MessageID string `json:"message_id"`
	Queue     string `json:"queue"`
	// Outcome is "done", "failed" or "unreached"; [InWork] while the app has not
	// answered yet.
	Outcome string `json:"outcome"`
	Status  int    `json:"status,omitempty"` // of HTTP; 0 without an answer
	Reason  string `json:"reason,omitempty"` // why it is not done, in a few words
	Answer  string `json:"answer,omitempty"` // the begin of one that is not a success
	// Attempt counts deliveries of the message by this process, ReceiveCount
	// the receives as the queue counts them.
	Attempt      int `json:"attempt,omitempty"`
	ReceiveCount int `json:"receive_count,omitempty"`
	// DurationMS is how long the app took, WaitMS the time from the send to the
	// start of this attempt, in milliseconds.
	DurationMS int64     `json:"duration_ms"`
	WaitMS     int64     `json:"wait_ms"`
	At         time.Time `json:"at"` // when the attempt ended
	// RetryAt is when the message becomes visible again, where that is known;
	// DeadLetterQueue where it goes instead, after its last attempt.
	RetryAt         time.Time `json:"retry_at,omitzero"`
	DeadLetterQueue string    `json:"dead_letter_queue,omitempty"`
}

// DeliveryList is the answer of /api/v1/deliveries.
type DeliveryList struct {
	Deliveries []Delivery `json:"deliveries"`
}

// InWork is the outcome of an attempt that has not ended. Its DurationMS is how long
// it has taken so far.
const InWork = "in work"

// Tried reports whether the delivery was an attempt: not where nothing reached the app,
// and the message comes again as soon as the app is ready.
func (d *Delivery) Tried() bool {
	return d.Outcome != queue.Unreached.String() || !d.RetryAt.IsZero()
}

// Done reports whether the app answered with success.
func (d *Delivery) Done() bool { return d.Outcome == queue.Done.String() }

// Problem is a group of failed deliveries of one queue with one reason.
type Problem struct {
	Queue  string `json:"queue"`
	Reason string `json:"reason"`
	// Count is how many of the remembered deliveries failed so, between First
	// and Last; LastMessageID is the message of the last one.
	Count         int       `json:"count"`
	First         time.Time `json:"first"`
	Last          time.Time `json:"last"`
	LastMessageID string    `json:"last_message_id"`
}
