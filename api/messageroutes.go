package api

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Selection says which messages of a queue are meant. The zero value is all of them.
type Selection struct {
	// IDs are those of the messages; nil for any.
	IDs []string `json:"ids,omitempty"`
	// Match is contained in the body.
	Match string `json:"match,omitempty"`
	// Attribute is the name of a message attribute, and Value its value; "" for any value.
	Attribute string `json:"attribute,omitempty"`
	Value     string `json:"value,omitempty"`
	// DeadSince and DeadUntil bound when the message was dead-lettered: not before the first, and before the second.
	DeadSince time.Time `json:"dead_since,omitzero"`
	DeadUntil time.Time `json:"dead_until,omitzero"`
	// Reason is that of the [ReasonGroup] to which the message belongs; nil for any.
	Reason *string `json:"reason,omitempty"`
	// Through is the place of the newest message that may match, see [Queue].Newest; 0 for any.
	Through int64 `json:"through,omitempty"`
}

// IsZero reports whether the selection means all messages.
func (s *Selection) IsZero() bool {
	return s.IDs == nil && s.Match == "" && s.Attribute == "" && s.DeadSince.IsZero() && s.DeadUntil.IsZero() &&
		s.Reason == nil && s.Through == 0
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

// Total is how many messages a selection means.
type Total struct {
	N int64 `json:"n"`
	// Exact is false when there are more than N: counting would have taken too long.
	Exact bool `json:"exact"`
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
type DelayRequest struct {
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

// editRequest is the body of an edit: the message that takes the place of another.
type EditRequest struct {
	Message Outgoing `json:"message"`
	// To is the name of the queue to send it to; "" means the one that the old message was dead-lettered from.
	To string `json:"to,omitempty"`
}

// Retry makes one message visible at once, whatever it waits for.
func (c *Client) Retry(ctx context.Context, name, id string) (Placed, error) {
	return ask[Placed](ctx, c.conn, "POST /api/v1/queues/{name}/messages/{id}/retry", nothing, name, id)
}

// Delay hides one message for a time from now, in whole seconds and up to 12 hours.
func (c *Client) Delay(ctx context.Context, name, id string, delay time.Duration) (Placed, error) {
	return ask[Placed](ctx, c.conn, "POST /api/v1/queues/{name}/messages/{id}/delay",
		DelayRequest{int((delay + time.Second - 1) / time.Second)}, name, id)
}

// Edit sends a message to the queue to, or to the one that the message id was dead-lettered from when to is "", and
// removes the message id, in one step. It returns the new message's id.
func (c *Client) Edit(ctx context.Context, name, id, to string, msg Outgoing) (string, error) {
	answer, err := ask[SendAnswer](ctx, c.conn, "POST /api/v1/queues/{name}/messages/{id}/edit", EditRequest{msg, to},
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
func (c *Client) Move(ctx context.Context, from, to string, ids []string) (int, error) {
	n, err := ask[Count](ctx, c.conn, "POST /api/v1/queues/{name}/move", MoveRequest{IDs: ids, To: to}, from)
	return n["moved"], err
}

// Delete removes up to 1000 messages by id and returns how many there were. For more than one, confirm is their number
// as a person typed it.
func (c *Client) Delete(ctx context.Context, name string, ids []string, confirm int64) (int, error) {
	answer, err := ask[Deleted](ctx, c.conn, "POST /api/v1/queues/{name}/delete",
		Deletion{IDs: ids, Confirm: confirm}, name)
	return answer.Deleted, err
}

// DeleteMatching starts to delete the dead letters that a selection means, at most rate a second (1 to 500; 0 for no
// limit). For more than one, confirm is their number as a person typed it. The task goes on without the client.
func (c *Client) DeleteMatching(ctx context.Context, name string, sel Selection, rate int,
	confirm int64) (MoveTask, error) {
	answer, err := ask[Deleted](ctx, c.conn, "POST /api/v1/queues/{name}/delete",
		Deletion{Filter: &sel, Rate: rate, Confirm: confirm}, name)
	if err != nil || answer.Task == nil {
		return MoveTask{}, err
	}
	return *answer.Task, nil
}
