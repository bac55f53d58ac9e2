package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tendril/broker"
	"tendril/queue"
)

// Selection says which messages of a queue are meant. The zero value is all of them.
type Selection = broker.Filter

// selectionOf reads a selection from the query of a request: match, attribute (NAME or NAME=VALUE), reason,
// dead_since, dead_until and through.
func selectionOf(r *http.Request) (sel Selection, err error) {
	query := r.URL.Query()
	sel.Match = query.Get("match")
	sel.Attribute, sel.Value, _ = strings.Cut(query.Get("attribute"), "=")
	if query.Has("reason") {
		reason := query.Get("reason")
		sel.Reason = &reason
	}
	if text := query.Get("through"); text != "" {
		if sel.Through, err = strconv.ParseInt(text, 10, 64); err != nil || sel.Through < 1 {
			return sel, refuse(http.StatusBadRequest, "through "+strconv.Quote(text)+" is not the place of a message",
				"use what a queue has as newest")
		}
	}
	for name, at := range map[string]*time.Time{"dead_since": &sel.DeadSince, "dead_until": &sel.DeadUntil} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		if *at, err = time.Parse(time.RFC3339, text); err != nil {
			return sel, refuse(http.StatusBadRequest, name+" "+strconv.Quote(text)+" is not a time",
				"use a form such as 2006-01-02T15:04:05Z")
		}
	}
	return sel, nil
}

// selectionQuery is the opposite of selectionOf.
func selectionQuery(sel *Selection) url.Values {
	query := url.Values{}
	if sel.Match != "" {
		query.Set("match", sel.Match)
	}
	if sel.Attribute != "" {
		query.Set("attribute", sel.Attribute)
		if sel.Value != "" {
			query.Set("attribute", sel.Attribute+"="+sel.Value)
		}
	}
	if sel.Reason != nil {
		query.Set("reason", *sel.Reason)
	}
	if sel.Through > 0 {
		query.Set("through", strconv.FormatInt(sel.Through, 10))
	}
	if !sel.DeadSince.IsZero() {
		query.Set("dead_since", sel.DeadSince.Format(time.RFC3339Nano))
	}
	if !sel.DeadUntil.IsZero() {
		query.Set("dead_until", sel.DeadUntil.Format(time.RFC3339Nano))
	}
	return query
}

// asksBodies reports whether a selection depends on what messages say.
func asksBodies(sel *Selection) bool { return sel.Match != "" || sel.Attribute != "" }

// Total is how many messages a selection means.
type Total struct {
	N int64 `json:"n"`
	// Exact is false when there are more than N: counting would have taken too long.
	Exact bool `json:"exact"`
}

// shortCount is how long a count may take that a page waits for.
const shortCount = 60 * time.Millisecond

func (q *queueRoutes) count(r *http.Request) (any, error) {
	sel, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	within, err := waitTime(r.URL.Query().Get("wait"), maxWait-time.Second, shortCount)
	if err != nil {
		return nil, err
	}
	n, exact, err := q.broker.Queue(r.PathValue("name")).Count(r.Context(), sel, within)
	return Total{n, exact}, err
}

// Count counts the messages of an embedded queue that a selection means, for up to within; 0 means as long as a page
// can wait.
func (c *Client) Count(ctx context.Context, name string, sel Selection, within time.Duration) (Total, error) {
	query := selectionQuery(&sel)
	if within > 0 {
		query.Set("wait", within.String())
	}
	return ask[Total](ctx, c.conn, "GET /api/v1/queues/{name}/count?"+query.Encode()+bodyQuery(c.Bodies, "&"), nil, name)
}

// delayRequest is the body of a delay.
type delayRequest struct {
	// Seconds is how long the message is hidden from now: 0 to 43200.
	Seconds int `json:"seconds"`
}

// Placed is where a message is after an act on it.
type Placed struct {
	ID    string `json:"id"`
	State string `json:"state"`
	// VisibleAt is zero for a visible message.
	VisibleAt time.Time `json:"visible_at,omitzero"`
}

func (Placed) touched() int { return 1 }

func (q *queueRoutes) retry(r *http.Request) (any, error) { return q.reschedule(r, 0) }

func (q *queueRoutes) delay(r *http.Request, body delayRequest) (any, error) {
	if most := int(queue.MaxVisibility / time.Second); body.Seconds < 0 || body.Seconds > most {
		return nil, refuse(http.StatusBadRequest, "a delay of "+strconv.Itoa(body.Seconds)+" seconds is out of range",
			"use 0 to "+strconv.Itoa(most))
	}
	return q.reschedule(r, time.Duration(body.Seconds)*time.Second)
}

func (q *queueRoutes) reschedule(r *http.Request, delay time.Duration) (any, error) {
	name, id := r.PathValue("name"), r.PathValue("id")
	if err := q.broker.Queue(name).Reschedule(r.Context(), id, delay); err != nil {
		return nil, err
	}
	stored, err := q.broker.Message(r.Context(), name, id)
	if gone := (&queue.Error{Code: queue.CodeResourceNotFound}); delay == 0 && errors.Is(err, gone) {
		return Placed{ID: id, State: string(broker.Visible)}, nil // it became visible, and was delivered since
	}
	if err != nil {
		return nil, err
	}
	m := fromStored(&stored)
	return Placed{m.ID, m.State, m.VisibleAt}, nil
}

// editRequest is the body of an edit: the message that takes the place of another.
type editRequest struct {
	Message Outgoing `json:"message"`
	// To is the name of the queue to send it to; "" means the one that the old message was dead-lettered from.
	To string `json:"to,omitempty"`
}

func (q *queueRoutes) edit(r *http.Request, body editRequest) (any, error) {
	name, id := r.PathValue("name"), r.PathValue("id")
	if body.To == "" {
		old, err := q.broker.Message(r.Context(), name, id)
		if err != nil {
			return nil, err
		}
		if body.To = old.DeadLetterSource[strings.LastIndexByte(old.DeadLetterSource, ':')+1:]; body.To == "" {
			return nil, refuse(http.StatusBadRequest, "the message does not say which queue it came from",
				"name the queue to send it to as to")
		}
	}
	sent, err := q.broker.Queue(name).Replace(r.Context(), id, body.To, body.Message.ToQueue())
	return sendAnswer{[]sendResult{{ID: sent.ID, SequenceNumber: sent.SequenceNumber}}}, err
}

// messageClient is the part of a [Client] that acts on messages of embedded queues.
type messageClient struct{ conn *connection }

// Retry makes one message visible at once, whatever it waits for.
func (c messageClient) Retry(ctx context.Context, name, id string) (Placed, error) {
	return ask[Placed](ctx, c.conn, "POST /api/v1/queues/{name}/messages/{id}/retry", nothing, name, id)
}

// Delay hides one message for a time from now, in whole seconds and up to 12 hours.
func (c messageClient) Delay(ctx context.Context, name, id string, delay time.Duration) (Placed, error) {
	return ask[Placed](ctx, c.conn, "POST /api/v1/queues/{name}/messages/{id}/delay",
		delayRequest{int((delay + time.Second - 1) / time.Second)}, name, id)
}

// Edit sends a message to the queue to, or to the one that the message id was dead-lettered from when to is "", and
// removes the message id, in one step. It returns the new message's id.
func (c messageClient) Edit(ctx context.Context, name, id, to string, msg Outgoing) (string, error) {
	answer, err := ask[sendAnswer](ctx, c.conn, "POST /api/v1/queues/{name}/messages/{id}/edit", editRequest{msg, to},
		name, id)
	if err != nil {
		return "", err
	}
	if len(answer.Results) != 1 {
		return "", fmt.Errorf("the console at %s answered one message with %d results", c.conn.instance.Console,
			len(answer.Results))
	}
	return answer.Results[0].ID, nil
}

// Move moves up to 1000 messages by id to another queue and returns how many
// there were. An empty to means the queue that each was dead-lettered from.
func (c messageClient) Move(ctx context.Context, from, to string, ids []string) (int, error) {
	n, err := ask[count](ctx, c.conn, "POST /api/v1/queues/{name}/move", selection{IDs: ids, To: to}, from)
	return n["moved"], err
}

// Delete removes up to 1000 messages by id and returns how many there were. For more than one, confirm is their number
// as a person typed it.
func (c messageClient) Delete(ctx context.Context, name string, ids []string, confirm int64) (int, error) {
	answer, err := ask[deleted](ctx, c.conn, "POST /api/v1/queues/{name}/delete",
		deletion{IDs: ids, Confirm: confirm}, name)
	return answer.Deleted, err
}

// DeleteMatching starts to delete the dead letters that a selection means, at most rate a second (1 to 500; 0 for no
// limit). For more than one, confirm is their number as a person typed it. The task goes on without the client.
func (c messageClient) DeleteMatching(ctx context.Context, name string, sel Selection, rate int,
	confirm int64) (MoveTask, error) {
	answer, err := ask[deleted](ctx, c.conn, "POST /api/v1/queues/{name}/delete",
		deletion{Filter: &sel, Rate: rate, Confirm: confirm}, name)
	if err != nil || answer.Task == nil {
		return MoveTask{}, err
	}
	return *answer.Task, nil
}
