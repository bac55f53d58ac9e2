package console

import (
	"context"
	"net/http"
	"time"

	"tendril/broker"
	"tendril/queue"
)

// MoveTask is the latest task that moves the messages of a dead-letter queue.
type MoveTask struct {
	// Status is RUNNING, COMPLETED, CANCELLED or FAILED, as in the SQS API.
	Status string `json:"status"`
	// Moved counts the messages moved so far, ToMove those that the queue held at the start.
	Moved  int64 `json:"moved"`
	ToMove int64 `json:"to_move"`
	// Rate is the most messages moved per second; 0 means no limit.
	Rate int `json:"rate"`
	// Destination is an ARN; "" means the queue that each message was dead-lettered from.
	Destination   string    `json:"destination,omitempty"`
	FailureReason string    `json:"failure_reason,omitempty"`
	StartedAt     time.Time `json:"started_at"`
}

// redriveRequest is the body of starting such a task.
type redriveRequest struct {
	// To is the name of the queue to move to; "" means the one that each message was dead-lettered from.
	To string `json:"to,omitempty"`
	// Rate is 1 to 500 messages per second; 0 means no limit.
	Rate int `json:"rate,omitempty"`
}

func (q *queueRoutes) redrive(r *http.Request, body redriveRequest) (any, error) {
	name, to := r.PathValue("name"), ""
	if body.To != "" {
		to = q.broker.ARN(body.To)
	}
	if _, err := q.broker.StartMoveTask(r.Context(), q.broker.ARN(name), to, body.Rate); err != nil {
		return nil, err
	}
	return q.redriveTask(r)
}

func (q *queueRoutes) redriveTask(r *http.Request) (any, error) {
	task, err := q.latestMove(r.PathValue("name"))
	return MoveTask{Status: string(task.Status), Moved: task.Moved, ToMove: task.ToMove, Rate: task.Rate,
		Destination: task.Destination, FailureReason: task.FailureReason, StartedAt: task.StartedAt}, err
}

func (q *queueRoutes) cancelRedrive(r *http.Request) (any, error) {
	task, err := q.latestMove(r.PathValue("name"))
	if err == nil {
		_, err = q.broker.CancelMoveTask(r.Context(), task.Handle)
	}
	if err != nil {
		return nil, err
	}
	return q.redriveTask(r)
}

// latestMove returns the latest task of a queue.
func (q *queueRoutes) latestMove(name string) (broker.MoveTask, error) {
	tasks, err := q.broker.MoveTasks(q.broker.ARN(name), 1)
	if err == nil && len(tasks) == 0 {
		err = queue.Errorf(queue.CodeResourceNotFound, "No messages of queue %s were redriven by a task.", name)
	}
	if err != nil {
		return broker.MoveTask{}, err
	}
	return tasks[0], nil
}

// Redrive starts to move all messages of a dead-letter queue to the queue to, or back to where each came from when to
// is "", at most rate a second (1 to 500; 0 for no limit). The task goes on without the client.
func (c *Client) Redrive(ctx context.Context, name, to string, rate int) (MoveTask, error) {
	return ask[MoveTask](ctx, c.conn, "POST /api/v1/queues/{name}/redrive", redriveRequest{To: to, Rate: rate}, name)
}

// RedriveTask returns the latest task of a dead-letter queue.
func (c *Client) RedriveTask(ctx context.Context, name string) (MoveTask, error) {
	return ask[MoveTask](ctx, c.conn, "GET /api/v1/queues/{name}/redrive", nil, name)
}

// CancelRedrive ends the running task of a dead-letter queue. What was moved stays moved.
func (c *Client) CancelRedrive(ctx context.Context, name string) (MoveTask, error) {
	return ask[MoveTask](ctx, c.conn, "DELETE /api/v1/queues/{name}/redrive", nil, name)
}
