package console

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"tendril/broker"
	"tendril/queue"
)

// MoveTask is the latest task that moves, or deletes, the messages of a dead-letter queue.
type MoveTask struct {
	// Status is RUNNING, COMPLETED, CANCELLED or FAILED, as in the SQS API.
	Status string `json:"status"`
	// Deletes is whether it deletes the messages, Filtered whether it means some of them only.
	Deletes  bool `json:"deletes,omitempty"`
	Filtered bool `json:"filtered,omitempty"`
	// Moved counts the messages moved or deleted so far, ToMove those that were meant at the start.
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
	// Filter says which messages; all without it.
	Filter Selection `json:"filter,omitzero"`
	// Most is how many messages the caller saw to match: with more the request is refused. 0 for any number.
	Most int64 `json:"most,omitempty"`
}

func (r *redriveRequest) check() error { return checkSelection(&r.Filter) }

func (t MoveTask) touched() int {
	if t.Status == string(broker.MoveRunning) {
		return int(t.ToMove)
	}
	return int(t.Moved)
}

func (q *queueRoutes) redrive(r *http.Request, body redriveRequest) (any, error) {
	if err := mayAsk(r, &body.Filter); err != nil {
		return nil, err
	}
	if body.Most > 0 {
		n, err := q.matching(r, &body.Filter)
		if err == nil && n > body.Most {
			err = refuse(http.StatusConflict, strconv.FormatInt(n, 10)+" messages match, more than the "+
				strconv.FormatInt(body.Most, 10)+" that were expected: none was moved", "look at them again, and repeat the act")
		}
		if err != nil {
			return nil, err
		}
	}
	to := ""
	if body.To != "" {
		to = q.broker.ARN(body.To)
	}
	return q.start(r, broker.MoveRequest{Destination: to, Rate: body.Rate, Filter: body.Filter})
}

// start starts a task on the queue that a request names.
func (q *queueRoutes) start(r *http.Request, task broker.MoveRequest) (MoveTask, error) {
	task.Source = q.broker.ARN(r.PathValue("name"))
	_, err := q.broker.StartMoveTask(r.Context(), task)
	if errors.Is(err, broker.ErrMoveRunning) {
		return MoveTask{}, refuse(http.StatusConflict, err.Error(), "wait for the task to finish, or cancel it")
	}
	if err != nil {
		return MoveTask{}, err
	}
	return q.moveTask(r)
}

func (q *queueRoutes) redriveTask(r *http.Request) (any, error) { return q.moveTask(r) }

func (q *queueRoutes) moveTask(r *http.Request) (MoveTask, error) {
	task, err := q.latestMove(r.PathValue("name"))
	return MoveTask{Status: string(task.Status), Deletes: task.Delete, Filtered: !task.Filter.IsZero(), Moved: task.Moved,
		ToMove: task.ToMove, Rate: task.Rate, Destination: task.Destination, FailureReason: task.FailureReason,
		StartedAt: task.StartedAt}, err
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

// Redrive starts to move the messages of a dead-letter queue that a selection means to the queue to, or back to where
// each came from when to is "", at most rate a second (1 to 500; 0 for no limit). If most is not 0, it is refused where
// more messages than that match. The task goes on without the client.
func (c messageClient) Redrive(ctx context.Context, name, to string, rate int, sel Selection, most int64) (MoveTask,
	error) {
	return ask[MoveTask](ctx, c.conn, "POST /api/v1/queues/{name}/redrive", redriveRequest{to, rate, sel, most}, name)
}

// RedriveTask returns the latest task of a dead-letter queue.
func (c messageClient) RedriveTask(ctx context.Context, name string) (MoveTask, error) {
	return ask[MoveTask](ctx, c.conn, "GET /api/v1/queues/{name}/redrive", nil, name)
}

// CancelRedrive ends the running task of a dead-letter queue. What was moved stays moved, what was deleted is gone.
func (c messageClient) CancelRedrive(ctx context.Context, name string) (MoveTask, error) {
	return ask[MoveTask](ctx, c.conn, "DELETE /api/v1/queues/{name}/redrive", nil, name)
}
