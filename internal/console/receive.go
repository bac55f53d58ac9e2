package console

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"tendril/queue"
)

// maxReceiveWait is the longest that a receive waits for a first message.
const maxReceiveWait = 20 * time.Second

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

func (q *ReceiveRequest) check() error {
	most := int(queue.MaxVisibility / time.Second)
	switch {
	case q.Max < 0 || q.Max > queue.MaxBatch:
		return refuse(http.StatusBadRequest, fmt.Sprintf("max %d is out of range", q.Max), "use 1 to 10")
	case q.WaitSeconds < 0 || q.WaitSeconds > int(maxReceiveWait/time.Second):
		return refuse(http.StatusBadRequest, fmt.Sprintf("wait_seconds %d is out of range", q.WaitSeconds), "use 0 to 20")
	case q.VisibilitySeconds != nil && (*q.VisibilitySeconds < 0 || *q.VisibilitySeconds > most):
		return refuse(http.StatusBadRequest, fmt.Sprintf("visibility_seconds %d is out of range", *q.VisibilitySeconds),
			fmt.Sprintf("use 0 to %d", most))
	}
	return nil
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

// The answer of a receive, and the body of a deletion by receipt.
type (
	receivedList struct {
		Messages []ReceivedMessage `json:"messages"`
	}
	receipts struct {
		Receipts []string `json:"receipts"`
	}
)

func (l receivedList) touched() int { return len(l.Messages) }

func (r *receipts) check() error { return checkIDs(r.Receipts) }

// receive counts as a receive of each message. Who may not read messages gets none.
func (q *queueRoutes) receive(r *http.Request, body ReceiveRequest) (any, error) {
	if !callerOf(r).may(ScopeRead) {
		return nil, refuse(http.StatusForbidden, "receiving shows messages: it needs the scope "+ScopeRead,
			"use a token with the scopes read and act")
	}
	name := r.PathValue("name")
	got, err := q.broker.Queue(name).Receive(r.Context(), body.ToQueue())
	list := receivedList{Messages: []ReceivedMessage{}}
	for i := range got {
		list.Messages = append(list.Messages, ReceivedMessage{FromMessage(&got[i], name), got[i].ReceiptHandle})
	}
	return list, err
}

// acknowledge deletes messages by the handles of their receives.
func (q *queueRoutes) acknowledge(r *http.Request, body receipts) (any, error) {
	errs := q.broker.Queue(r.PathValue("name")).Delete(r.Context(), body.Receipts)
	done := len(body.Receipts)
	var failed error
	for _, err := range errs {
		if err != nil {
			done, failed = done-1, err
		}
	}
	if done == 0 {
		return nil, failed
	}
	return count{"deleted": done}, nil
}

// Receive takes messages from an embedded queue, as a consumer does: it counts as a receive of each, and hides them.
func (c messageClient) Receive(ctx context.Context, name string, req ReceiveRequest) ([]ReceivedMessage, error) {
	list, err := ask[receivedList](ctx, c.conn, "POST /api/v1/queues/{name}/receive", req, name)
	return list.Messages, err
}

// Acknowledge deletes up to ten received messages by their handles, and returns how many were deleted.
func (c messageClient) Acknowledge(ctx context.Context, name string, handles []string) (int, error) {
	n, err := ask[count](ctx, c.conn, "POST /api/v1/queues/{name}/acknowledge", receipts{handles}, name)
	return n["deleted"], err
}
