package api

import (
	"time"

	"tendril/queue"
)

// ReceivedMessage is a message with the handle of the receive, by which it is deleted.
type ReceivedMessage struct {
	Message
	ReceiptHandle string `json:"receipt_handle"`
}

// ReceiveRequest asks for messages as a consumer does. The zero value is one message, if there is one.
type ReceiveRequest struct {
	// Max is 1 to 10; 0 means 1.
	Max int `json:"max,omitempty"`
	// WaitSeconds is how long to wait for a first message, 0 to 20.
	WaitSeconds int `json:"wait_seconds,omitempty"`
	// VisibilitySeconds hides the messages from others for 0 to 43200 s; nil means the queue's own time.
	VisibilitySeconds *int `json:"visibility_seconds,omitempty"`
}

// ToQueue returns the request in the words of package queue.
func (q *ReceiveRequest) ToQueue() queue.ReceiveRequest {
	wait := time.Duration(q.WaitSeconds) * time.Second
	out := queue.ReceiveRequest{Max: max(q.Max, 1), Wait: &wait}
	if q.VisibilitySeconds != nil {
		visibility := time.Duration(*q.VisibilitySeconds) * time.Second
		out.Visibility = &visibility
	}
	return out
}

type (
	// ReceivedList is the answer of a receive.
	ReceivedList struct {
		Messages []ReceivedMessage `json:"messages"`
	}
	// Receipts is the body of a deletion by receipt handle.
	Receipts struct {
		Receipts []string `json:"receipts"`
	}
)
