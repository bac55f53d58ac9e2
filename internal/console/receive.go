package console

import (
	"fmt"
	"time"

	"tendril/api"
	"tendril/queue"
)

const maxReceiveWait = 20 * time.Second

func checkReceive(q *api.ReceiveRequest) error {
	most := int(queue.MaxVisibility / time.Second)
	switch {
	case q.Max < 0 || q.Max > queue.MaxBatch:
		return api.BadRequest(fmt.Sprintf("max %d is out of range", q.Max), "use 1 to 10")
	case q.WaitSeconds < 0 || q.WaitSeconds > int(maxReceiveWait/time.Second):
		return api.BadRequest(fmt.Sprintf("wait_seconds %d is out of range", q.WaitSeconds), "use 0 to 20")
	case q.VisibilitySeconds != nil && (*q.VisibilitySeconds < 0 || *q.VisibilitySeconds > most):
		return api.BadRequest(fmt.Sprintf("visibility_seconds %d is out of range", *q.VisibilitySeconds),
			fmt.Sprintf("use 0 to %d", most))
	}
	return nil
}

func (q *queueRoutes) receive(c *call, body api.ReceiveRequest) (api.ReceivedList, error) {
	if !c.caller.may(api.ScopeRead) {
		return api.ReceivedList{}, api.Forbidden("receiving shows messages: it needs the scope "+api.ScopeRead,
			"use a token with the scopes read and act")
	}
	got, err := q.broker.Queue(c.name).Receive(c.ctx, body.ToQueue())
	list := api.ReceivedList{Messages: []api.ReceivedMessage{}}
	for i := range got {
		list.Messages = append(list.Messages, api.ReceivedMessage{Message: api.FromMessage(&got[i], c.name), ReceiptHandle: got[i].ReceiptHandle})
	}
	return list, err
}

func (q *queueRoutes) acknowledge(c *call, body api.Receipts) (api.Count, error) {
	errs := q.broker.Queue(c.name).Delete(c.ctx, body.Receipts)
	done := len(body.Receipts)
	var failed error
	for _, err := range errs {
		if err != nil {
			done--
			failed = err
		}
	}
	if done == 0 {
		return nil, failed
	}
	return api.Count{"deleted": done}, nil
}
