package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tendril/health"
)

// Live returns nil when the console answers.
func (c *Client) Live(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodGet, "/livez", nil, nil)
	return err
}

// Ready returns every check, and whether all of them are OK.
func (c *Client) Ready(ctx context.Context) ([]Check, bool, error) {
	var r readiness
	_, err := c.call(ctx, http.MethodGet, "/readyz?verbose", nil, &r)
	return r.Checks, r.Ready, err
}

// Status returns what the environment says about itself. The error wraps
// [ErrNotRunning] when another process answers at its address.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var st Status
	if _, err := c.call(ctx, http.MethodGet, "/api/v1/status", nil, &st); err != nil {
		return Status{}, err
	}
	if st.PID != c.Instance.PID {
		return Status{}, notRunning(c.dataDir)
	}
	return st, nil
}

// Health returns how the environment does, with its causes.
func (c *Client) Health(ctx context.Context) (health.Report, error) {
	var r health.Report
	_, err := c.call(ctx, http.MethodGet, "/api/v1/health", nil, &r)
	return r, err
}

// Queues returns every embedded queue, sorted by name, without attributes.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	var list queueList
	_, err := c.call(ctx, http.MethodGet, "/api/v1/queues", nil, &list)
	return list.Queues, err
}

// Queue returns one embedded queue with its attributes.
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	var q Queue
	_, err := c.call(ctx, http.MethodGet, queuePath(name, ""), nil, &q)
	return q, err
}

func queuePath(name, rest string) string { return "/api/v1/queues/" + url.PathEscape(name) + rest }

// Filter selects messages to look at. The zero value is all of them.
type Filter struct {
	// State is one of the Message constants; "" means all.
	State string
	// Match keeps messages whose body contains it; "" keeps all.
	Match string
	// After is the cursor that the page before gave; "" starts at the oldest.
	After string
	// Limit is the most messages of one page, 1 to 1000; 0 means 100.
	Limit int
}

// Messages returns one page of messages, oldest first, without counting a
// receive, and the cursor of the next page: "" at the end. A page may be
// shorter than its limit before the end.
func (c *Client) Messages(ctx context.Context, name string, f Filter) (page []Message, next string, err error) {
	query := url.Values{}
	set := func(key, value string) {
		if value != "" {
			query.Set(key, value)
		}
	}
	set("state", f.State)
	set("match", f.Match)
	set("after", f.After)
	if f.Limit != 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	var answer messagePage
	_, err = c.call(ctx, http.MethodGet, queuePath(name, "/messages?"+query.Encode()), nil, &answer)
	return answer.Messages, answer.Next, err
}

// Message returns one message by its id; an error of status 404 when the queue
// does not hold it.
func (c *Client) Message(ctx context.Context, name, id string) (Message, error) {
	var m Message
	_, err := c.call(ctx, http.MethodGet, queuePath(name, "/messages/"+url.PathEscape(id)), nil, &m)
	return m, err
}

// Deliveries returns up to limit recent deliveries, the most recent first; 100
// when limit is 0.
func (c *Client) Deliveries(ctx context.Context, limit int) ([]Delivery, error) {
	path := "/api/v1/deliveries"
	if limit != 0 {
		path += "?limit=" + strconv.Itoa(limit)
	}
	var list deliveryList
	_, err := c.call(ctx, http.MethodGet, path, nil, &list)
	return list.Deliveries, err
}

// Outcome returns the most recent delivery of a message, waiting up to wait for
// the end of the first one, or what is in work then. The bool is false when there is
// neither.
func (c *Client) Outcome(ctx context.Context, id string, wait time.Duration) (Delivery, bool, error) {
	until := time.Now().Add(wait)
	for {
		left := min(max(time.Until(until), 0), MaxWait)
		var d Delivery
		_, err := c.call(ctx, http.MethodGet, "/api/v1/messages/"+url.PathEscape(id)+"/outcome?wait="+left.String(), nil, &d)
		switch {
		case err == nil && (d.Outcome == InWork || !d.Tried()) && left == MaxWait:
			continue
		case err == nil:
			return d, true, nil
		}
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound {
			return Delivery{}, false, err
		}
		if left < MaxWait {
			return Delivery{}, false, nil
		}
	}
}
