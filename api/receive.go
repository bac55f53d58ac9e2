package api

import (
	"time"

	"tendril/queue"
)

// ReceivedMessage is a message with its receipt handle.
type ReceivedMessage struct {
	Message
	ReceiptHandle string `json:"receipt_handle"`
}

// ReceiveRequest is the body of a receive. The zero value asks for one message without waiting.
type ReceiveRequest struct {
	Max               int  `json:"max,omitempty"`                // 1 to 10; 0 means 1
	WaitSeconds       int  `json:"wait_seconds,omitempty"`       // 0 to 20
	VisibilitySeconds *int `json:"visibility_seconds,omitempty"` // 0 to 43200; nil means the queue's default
}

// ToQueue converts to package queue's type.
func (q *ReceiveRequest) ToQueue() queue.ReceiveRequest {
	out := queue.ReceiveRequest{Max: max(q.Max, 1), Wait: new(time.Duration(q.WaitSeconds) * time.Second)}
	if q.VisibilitySeconds != nil {
		out.Visibility = new(time.Duration(*q.VisibilitySeconds) * time.Second)
	}
	return out
}

type (
	// ReceivedList is the response to a [ReceiveRequest].
	ReceivedList struct {
		Messages []ReceivedMessage `json:"messages"`
	}
	// Receipts is the request body of [Client.Acknowledge].
	Receipts struct {
		Receipts []string `json:"receipts"`
	}
)
