package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/queue"
)

type queueRoutes struct {
	broker      *broker.Broker
	environment func() api.Status
}

func (q *queueRoutes) list(*call) (api.QueueList, error) {
	queues, err := listQueues(q.broker, q.environment().Workers)
	return api.QueueList{Queues: queues}, err
}

func (q *queueRoutes) get(c *call) (api.Queue, error) {
	found, err := readQueue(q.broker, c.name, q.environment().Workers)
	if err != nil {
		return api.Queue{}, err
	}
	found.DeadLetterSources, err = q.broker.DeadLetterSources(c.name)
	return found, err
}

func listQueues(b *broker.Broker, workers []api.Worker) ([]api.Queue, error) {
	queues := []api.Queue{}
	for _, name := range b.ListQueues("") {
		q, err := readQueue(b, name, workers)
		if errors.Is(err, queue.ErrNoQueue) {
			continue
		}
		if err != nil {
			return nil, err
		}
		q.Attributes = nil
		queues = append(queues, q)
	}
	return queues, nil
}

func readQueue(b *broker.Broker, name string, workers []api.Worker) (api.Queue, error) {
	attributes, err := b.Attributes(name)
	ledger, err2 := b.Ledger(name)
	oldest, err3 := b.OldestAge(name)
	newest, err4 := b.Newest(name)
	if err := cmp.Or(err, err2, err3, err4); err != nil {
		return api.Queue{}, err
	}

	q := api.Queue{Name: name, ARN: b.ARN(name), FIFO: attributes["FifoQueue"] == "true", Ledger: ledger,
		OldestSeconds: oldest.Seconds(), Newest: newest, Attributes: attributes}
	q.DeadLetterQueue, q.MaxReceives = queue.ParseRedrivePolicy(attributes["RedrivePolicy"])
	q.DeadLetterQueueMissing = b.MissingDeadLetterQueue(name) != ""
	for _, w := range workers {
		if w.Queue == name {
			q.Progress = w.Progress
		}
	}

	return q, nil
}

// To limit memory, a page ends early when its bodies and recorded responses exceed pageBytes. The first chunk is small
// in case its messages are large.
const (
	pageBytes  = 4 << 20
	firstChunk = 8
	nextChunk  = 32
	// With a filter, a page ends after pageWait even if it is not full.
	pageWait = 80 * time.Millisecond
)

func (q *queueRoutes) messages(c *call) (api.MessagePage, error) {
	req, err := browseRequest(c)
	if err != nil {
		return api.MessagePage{}, err
	}

	page := api.MessagePage{Messages: []api.Message{}, Next: req.After}
	limit := req.Limit
	start := time.Now()
	size := 0
	for chunk := firstChunk; size < pageBytes && len(page.Messages) < limit; chunk = nextChunk {
		req.After = page.Next
		req.Limit = min(limit-len(page.Messages), chunk)
		stored, next, err := q.broker.Browse(c.ctx, c.name, req)
		if err != nil {
			return api.MessagePage{}, err
		}

		for i := range stored {
			page.Messages = append(page.Messages, fromStored(&stored[i]))
			size += textSize(&stored[i])
		}
		page.Next = next
		if next == "" || req.Within > 0 && time.Since(start) > req.Within {
			break
		}
	}
	return page, nil
}

func textSize(m *broker.Stored) int {
	size := len(m.Body)
	for _, a := range m.Attempts {
		size += len(a.Answer)
	}
	return size
}

func browseRequest(c *call) (req broker.BrowseRequest, err error) {
	req.After = c.query.Get("after")
	if req.Filter, err = readSelection(c); err != nil {
		return req, err
	}
	if !req.Filter.IsZero() {
		req.Within = pageWait
	}

	if req.State, err = parseState(c.query.Get("state")); err != nil {
		return req, err
	}
	req.Limit, err = readLimit(c, maxLimit)
	return req, err
}

func parseState(text string) (broker.State, error) {
	switch text {
	case "", api.MessageVisible, api.MessageDelayed, api.MessageDamaged, string(broker.InFlight):
		return broker.State(text), nil
	case api.MessageInFlight:
		return broker.InFlight, nil
	}
	return "", api.BadRequest("unknown state "+strconv.Quote(text), "use visible (waiting), delayed, in_flight or damaged")
}

func (q *queueRoutes) message(c *call) (api.Message, error) {
	stored, err := q.broker.Message(c.ctx, c.name, c.id)
	return fromStored(&stored), err
}

func (q *queueRoutes) reasons(c *call) (api.ReasonList, error) {
	groups, err := q.broker.DeadLetterReasons(c.ctx, c.name)
	return api.ReasonList{Reasons: groups}, err
}

func (q *queueRoutes) create(c *call, body api.Creation) (api.Created, error) {
	err := q.broker.CreateQueue(c.ctx, body.Name, body.Attributes, nil)
	if err == nil {
		c.name = body.Name // the subject of the audited action
	}
	return api.Created{Name: body.Name, ARN: q.broker.ARN(body.Name)}, err
}

func (q *queueRoutes) deleteQueue(c *call) (api.Count, error) {
	name := c.name
	ledger, err := q.broker.Ledger(name)
	if err != nil {
		return nil, err
	}

	if slices.ContainsFunc(q.environment().Workers, func(w api.Worker) bool { return w.Queue == name }) {
		return nil, api.Conflict("this environment uses queue "+name,
			"stop it and restart it with other --queues before you delete the queue")
	}

	sources, err := q.broker.DeadLetterSources(name)
	if err != nil {
		return nil, err
	}
	if len(sources) > 0 {
		return nil, api.Conflict(name+" is the dead-letter queue of "+strings.Join(sources, ", "),
			"delete those first, or change their redrive policy")
	}

	if c.query.Get("confirm") != name {
		return nil, api.NewError(http.StatusPreconditionRequired, "this cannot be undone: confirm it with the name of the queue",
			"add ?confirm="+url.QueryEscape(name))
	}
	return api.Count{"deleted": int(ledger.Live)}, q.broker.DeleteQueue(c.ctx, name)
}

func (q *queueRoutes) send(c *call, body api.SendRequest) (api.SendAnswer, error) {
	if n := len(body.Messages); n == 0 || n > queue.MaxBatch {
		return api.SendAnswer{}, api.BadRequest(`"messages" has `+strconv.Itoa(n)+" messages",
			"send 1 to 10 of them at once")
	}

	msgs := make([]queue.Outgoing, len(body.Messages))
	for i := range body.Messages {
		msgs[i] = body.Messages[i].ToQueue()
	}

	sent, err := q.broker.Queue(c.name).Send(c.ctx, msgs)
	if err != nil {
		return api.SendAnswer{}, err
	}

	results := make([]api.SendResult, len(sent))
	for i, one := range sent {
		results[i] = api.SendResult{ID: one.ID, SequenceNumber: one.SequenceNumber}
		if one.Err != nil {
			refusal := asRefusal(one.Err)
			results[i] = api.SendResult{Error: refusal.Message, Code: refusal.Code}
		}
	}

	return api.SendAnswer{Results: results}, nil
}

func (q *queueRoutes) purge(c *call, sure api.Confirmation) (api.Count, error) {
	if err := confirm(sure, c.name); err != nil {
		return nil, err
	}
	n, err := q.broker.PurgeThrough(c.ctx, c.name, sure.Through)
	return api.Count{"purged": n}, err
}

func (q *queueRoutes) move(c *call, sel api.MoveRequest) (api.Count, error) {
	if sel.To != "" {
		if err := q.checkExists(sel.To); err != nil {
			return nil, err
		}
	}
	n, err := q.broker.Move(c.ctx, c.name, sel.To, sel.IDs)
	return api.Count{"moved": n}, err
}

// checkExists returns an error with the queue's name, which the errors of Amazon SQS do not contain.
func (q *queueRoutes) checkExists(name string) error {
	_, err := q.broker.Ledger(name)
	if errors.Is(err, queue.ErrNoQueue) {
		return &api.Error{Status: http.StatusNotFound, Code: queue.CodeQueueDoesNotExist, Message: "queue " + strconv.Quote(name) + " not found",
			Hint: hints[queue.CodeQueueDoesNotExist]}
	}
	return err
}

const exactCountWait = 20 * time.Second

func (q *queueRoutes) countMatching(c *call, filter *api.Selection) (int64, error) {
	n, exact, err := q.broker.Queue(c.name).Count(c.ctx, *filter, exactCountWait)
	if err != nil {
		return 0, err
	}
	if !exact {
		return 0, api.NewError(http.StatusUnprocessableEntity, "the queue holds too many messages to count the matches",
			"narrow the selection with dead_since and dead_until, or purge the queue")
	}
	return n, nil
}

func (q *queueRoutes) deleteSelected(c *call, body api.Deletion) (api.Deleted, error) {
	if body.Filter == nil {
		if err := confirmCount(&body, int64(len(body.IDs))); err != nil {
			return api.Deleted{}, err
		}
		n, err := q.broker.DeleteMessages(c.ctx, c.name, body.IDs)
		return api.Deleted{Deleted: n}, err
	}

	if err := maySelect(c, body.Filter); err != nil {
		return api.Deleted{}, err
	}
	n, err := q.countMatching(c, body.Filter)
	if err != nil {
		return api.Deleted{}, err
	}
	if err := confirmCount(&body, n); err != nil {
		return api.Deleted{}, err
	}

	task, err := q.startMove(c, broker.MoveRequest{Delete: true, Rate: body.Rate, Filter: *body.Filter})
	return api.Deleted{Task: &task}, err
}

func maySelect(c *call, sel *api.Selection) error {
	if sel.Match == "" && sel.Attribute == "" || c.caller.may(api.ScopeRead) {
		return nil
	}
	return api.Forbidden("selecting messages by body or attribute needs the scope "+api.ScopeRead,
		"name them by ID, or use a token with the scopes read and act")
}

func (q *queueRoutes) deleteOne(c *call) (api.Count, error) {
	n, err := q.broker.DeleteMessages(c.ctx, c.name, []string{c.id})
	if err == nil && n == 0 {
		return nil, api.NotFound("queue "+c.name+" has no message "+strconv.Quote(c.id),
			"it may have been delivered since")
	}
	return api.Count{"deleted": n}, err
}
