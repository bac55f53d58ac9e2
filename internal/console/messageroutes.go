package console

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"tendril/api"
	"tendril/queue"
)

func readSelection(c *call) (sel api.Selection, err error) {
	query := c.query
	sel.Match = query.Get("match")
	if sel.Attribute, sel.Value, err = api.ParseAttributeFilter(query.Get("attribute")); err != nil {
		return sel, err
	}
	if query.Has("reason") {
		sel.Reason = new(query.Get("reason"))
	}

	if text := query.Get("through"); text != "" {
		if sel.Through, err = strconv.ParseInt(text, 10, 64); err != nil || sel.Through < 1 {
			return sel, api.BadRequest(`"through" `+strconv.Quote(text)+" is not a message position",
				`use "newest" of GET /api/v1/queues/NAME`)
		}
	}

	if sel.DeadSince, err = readTime(c, "dead_since"); err != nil {
		return sel, err
	}
	sel.DeadUntil, err = readTime(c, "dead_until")
	return sel, err
}

const (
	defaultCountWait = 60 * time.Millisecond     // short, because pages wait for the count
	longestCountWait = api.MaxWait - time.Second // leaves time for the response
)

func (q *queueRoutes) count(c *call) (api.Total, error) {
	sel, err := readSelection(c)
	if err != nil {
		return api.Total{}, err
	}
	within, err := parseWait(c.query.Get("wait"), longestCountWait, defaultCountWait)
	if err != nil {
		return api.Total{}, err
	}
	n, exact, err := q.broker.Queue(c.name).Count(c.ctx, sel, within)
	return api.Total{N: n, Exact: exact}, err
}

func (q *queueRoutes) retry(c *call) (api.Placed, error) { return q.reschedule(c, 0) }

func (q *queueRoutes) delay(c *call, body api.DelayRequest) (api.Placed, error) {
	if most := int(queue.MaxVisibility / time.Second); body.Seconds < 0 || body.Seconds > most {
		return api.Placed{}, api.BadRequest(fmt.Sprintf("a delay of %d seconds is out of range", body.Seconds),
			fmt.Sprintf("use 0 to %d", most))
	}
	return q.reschedule(c, time.Duration(body.Seconds)*time.Second)
}

func (q *queueRoutes) reschedule(c *call, delay time.Duration) (api.Placed, error) {
	if err := q.broker.Queue(c.name).Reschedule(c.ctx, c.id, delay); err != nil {
		return api.Placed{}, err
	}

	m, err := q.message(c)
	isGone := errors.Is(err, &queue.Error{Code: queue.CodeResourceNotFound})
	if isGone && delay == 0 {
		return api.Placed{ID: c.id, State: api.MessageTaken}, nil
	}
	return api.Placed{ID: m.ID, State: m.State, VisibleAt: m.VisibleAt}, err
}

func (q *queueRoutes) edit(c *call, body api.EditRequest) (api.SendAnswer, error) {
	if body.To == "" {
		old, err := q.broker.Message(c.ctx, c.name, c.id)
		if err != nil {
			return api.SendAnswer{}, err
		}
		body.To = queue.NameInARN(old.DeadLetterSource)
		if body.To == "" {
			return api.SendAnswer{}, api.BadRequest("the message does not record its queue",
				`name the destination queue in "to"`)
		}
	}
	sent, err := q.broker.Queue(c.name).Replace(c.ctx, c.id, body.To, body.Message.ToQueue())
	return api.SendAnswer{Results: []api.SendResult{{ID: sent.ID, SequenceNumber: sent.SequenceNumber}}}, err
}
