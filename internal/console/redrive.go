package console

import (
	"errors"
	"fmt"

	"tendril/api"
	"tendril/broker"
	"tendril/queue"
)

func (q *queueRoutes) redrive(c *call, body api.RedriveRequest) (api.MoveTask, error) {
	if err := maySelect(c, &body.Filter); err != nil {
		return api.MoveTask{}, err
	}

	if body.Most > 0 {
		n, err := q.countMatching(c, &body.Filter)
		if err != nil {
			return api.MoveTask{}, err
		}
		if n > body.Most {
			return api.MoveTask{}, api.Conflict(fmt.Sprintf("%d messages match, more than the %d expected: none were moved", n, body.Most),
				"review them again, and repeat the action")
		}
	}

	to := ""
	if body.To != "" {
		if err := q.checkExists(body.To); err != nil {
			return api.MoveTask{}, err
		}
		to = q.broker.ARN(body.To)
	}
	return q.startMove(c, broker.MoveRequest{Destination: to, Rate: body.Rate, Filter: body.Filter})
}

func (q *queueRoutes) startMove(c *call, task broker.MoveRequest) (api.MoveTask, error) {
	if err := q.checkExists(c.name); err != nil {
		return api.MoveTask{}, err
	}
	task.Source = q.broker.ARN(c.name)
	_, err := q.broker.StartMoveTask(c.ctx, task)
	if errors.Is(err, broker.ErrMoveRunning) {
		return api.MoveTask{}, api.Conflict(err.Error(), "wait for the task to finish, or cancel it")
	}
	if err != nil {
		return api.MoveTask{}, err
	}
	return q.redriveTask(c)
}

func (q *queueRoutes) redriveTask(c *call) (api.MoveTask, error) {
	task, err := q.latestMove(c.name)
	return api.MoveTask{Status: string(task.Status), Deletes: task.Delete, Filtered: !task.Filter.IsZero(), Moved: task.Moved,
		ToMove: task.ToMove, Rate: task.Rate, Destination: task.Destination, FailureReason: task.FailureReason,
		StartedAt: task.StartedAt}, err
}

func (q *queueRoutes) cancelRedrive(c *call) (api.MoveTask, error) {
	task, err := q.latestMove(c.name)
	if err != nil {
		return api.MoveTask{}, err
	}
	if _, err = q.broker.CancelMoveTask(c.ctx, task.Handle); err != nil {
		return api.MoveTask{}, err
	}
	return q.redriveTask(c)
}

func (q *queueRoutes) latestMove(name string) (broker.MoveTask, error) {
	if err := q.checkExists(name); err != nil {
		return broker.MoveTask{}, err
	}
	tasks, err := q.broker.MoveTasks(q.broker.ARN(name), 1)
	if err != nil {
		return broker.MoveTask{}, err
	}
	if len(tasks) == 0 {
		return broker.MoveTask{}, queue.Errorf(queue.CodeResourceNotFound,
			"No messages of queue %s were redriven by a task.", name)
	}
	return tasks[0], nil
}
