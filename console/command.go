package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tendril/queue"
)

// reason is the body of pausing; nothing the one of acts without a parameter.
type (
	reason struct {
		Reason string `json:"reason"`
	}
	nothing struct{}
)

// Pause stops the environment from receiving from a queue. The reason is shown
// to everybody who asks for the status; up to 200 bytes.
func (c *Client) Pause(ctx context.Context, name, why string) error {
	_, err := c.call(ctx, http.MethodPost, queuePath(name, "/pause"), reason{why}, nil)
	return err
}

// Resume undoes Pause.
func (c *Client) Resume(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodPost, queuePath(name, "/resume"), nothing{}, nil)
	return err
}

// Quiet stops the environment from receiving at all; it goes on running.
func (c *Client) Quiet(ctx context.Context, why string) error {
	_, err := c.call(ctx, http.MethodPost, "/api/v1/quiet", reason{why}, nil)
	return err
}

// ResumeAll undoes Quiet.
func (c *Client) ResumeAll(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodPost, "/api/v1/resume", nothing{}, nil)
	return err
}

// Purge removes all messages of a queue and returns how many there were.
func (c *Client) Purge(ctx context.Context, name string) (int, error) {
	return c.count(ctx, http.MethodPost, queuePath(name, "/purge"), nothing{})
}

// Move moves up to 1000 messages by id to another queue and returns how many
// there were. An empty to means the queue that each was dead-lettered from.
func (c *Client) Move(ctx context.Context, from, to string, ids []string) (int, error) {
	return c.count(ctx, http.MethodPost, queuePath(from, "/move"), selection{IDs: ids, To: to})
}

// Delete removes up to 1000 messages by id and returns how many there were.
func (c *Client) Delete(ctx context.Context, name string, ids []string) (int, error) {
	return c.count(ctx, http.MethodPost, queuePath(name, "/delete"), selection{IDs: ids})
}

// DeleteMessage removes one message; an error of status 404 when the queue does
// not hold it.
func (c *Client) DeleteMessage(ctx context.Context, name, id string) error {
	_, err := c.call(ctx, http.MethodDelete, queuePath(name, "/messages/"+url.PathEscape(id)), nil, nil)
	return err
}

func (c *Client) count(ctx context.Context, method, path string, body any) (int, error) {
	var n counted
	_, err := c.call(ctx, method, path, body, &n)
	for _, field := range []*int{n.Purged, n.Moved, n.Deleted} {
		if field != nil {
			return *field, err
		}
	}
	return 0, err
}

// Drain asks the environment to drain and stop, and waits up to wait for it.
// It returns true when all work is settled, false when the drain goes on. An
// environment that vanishes after it agreed to drain is drained. The [Error] of a
// drain that is over and cut work off is Late.
func (c *Client) Drain(ctx context.Context, wait time.Duration) (bool, error) {
	until := time.Now().Add(wait)
	for agreed := false; ; agreed = true {
		left := max(time.Until(until), 0)
		var d drained
		body := struct {
			Wait string `json:"wait"`
		}{min(left, MaxWait).String()}
		_, err := c.call(ctx, http.MethodPost, "/api/v1/drain", body, &d)
		switch {
		case agreed && errors.Is(err, ErrNotRunning):
			return true, nil
		case err != nil:
			return false, err
		case d.Drained || left <= MaxWait:
			return d.Drained, nil
		}
	}
}

// Deploy replaces the version of the app by the one in the folder or archive at
// path, an absolute path, or starts what runs now anew for "". It returns when
// the old version is gone. The error has status 422 when the deployment went
// wrong, and then its Switched, Step and Output, and 409 when it could not be
// begun. A ctx that ends does not end the deployment.
func (c *Client) Deploy(ctx context.Context, path string) (DeployResult, error) {
	var done DeployResult
	_, err := c.callBy(ctx, c.slow, http.MethodPost, "/api/v1/deploy", deployment{path}, &done)
	return done, err
}

// CreateQueue creates an embedded queue with SQS attributes, nil for defaults,
// and returns its ARN. A queue that exists with the same attributes is no
// error.
func (c *Client) CreateQueue(ctx context.Context, name string, attributes map[string]string) (arn string, err error) {
	var answer created
	_, err = c.call(ctx, http.MethodPost, "/api/v1/queues", creation{name, attributes}, &answer)
	return answer.ARN, err
}

// Send sends up to ten messages to an embedded queue and returns one
// [queue.Sent] for each, in order, once they are on disk; entries may fail one
// by one. The error is for the whole call.
func (c *Client) Send(ctx context.Context, name string, msgs []queue.Outgoing) ([]queue.Sent, error) {
	body := sending{Messages: make([]Outgoing, len(msgs))}
	for i := range msgs {
		body.Messages[i] = fromQueue(&msgs[i])
	}
	var answer sendings
	if _, err := c.call(ctx, http.MethodPost, queuePath(name, "/messages"), body, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(msgs) {
		return nil, fmt.Errorf("the console at %s answered %d messages with %d results", c.Instance.Console, len(msgs),
			len(answer.Results))
	}
	sent := make([]queue.Sent, len(msgs))
	for i, r := range answer.Results {
		sent[i] = queue.Sent{ID: r.ID, SequenceNumber: r.SequenceNumber}
		if r.Error != "" {
			sent[i].Err = &Error{Status: http.StatusBadRequest, Message: r.Error, Code: r.Code}
		}
	}
	return sent, nil
}
