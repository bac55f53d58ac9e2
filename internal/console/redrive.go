package console

import (
	"errors"
	"net/http"
	"strconv"

	"tendril/api"
	"tendril/broker"
	"tendril/queue"
)

func (q *queueRoutes) redrive(r *http.Request, body api.RedriveRequest) (any, error) {
	if err := mayAsk(r, &body.Filter); err != nil {
		return nil, err
	}
	if body.Most > 0 {
		n, err := q.matching(r, &body.Filter)
		if err == nil && n > body.Most {
			err = api.NewError(http.StatusConflict, strconv.FormatInt(n, 10)+" messages match, more than the "+
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
	return q.start(r, broker.MoveRequest{Destination: to, Rate: body.Rate, Filter: broker.Filter(body.Filter)})
}

// start starts a task on the queue that a request names.
func (q *queueRoutes) start(r *http.Request, task broker.MoveRequest) (api.MoveTask, error) {
	task.Source = q.broker.ARN(r.PathValue("name"))
	_, err := q.broker.StartMoveTask(r.Context(), task)
	if errors.Is(err, broker.ErrMoveRunning) {
		return api.MoveTask{}, api.NewError(http.StatusConflict, err.Error(), "wait for the task to finish, or cancel it")
	}
	if err != nil {
		return api.MoveTask{}, err
	}
	return q.moveTask(r)
}

func (q *queueRoutes) redriveTask(r *http.Request) (any, error) { return q.moveTask(r) }

func (q *queueRoutes) moveTask(r *http.Request) (api.MoveTask, error) {
	task, err := q.latestMove(r.PathValue("name"))
	return api.MoveTask{Status: string(task.Status), Deletes: task.Delete, Filtered: !task.Filter.IsZero(), Moved: task.Moved,
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
