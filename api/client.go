package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tendril/internal/observe/doctor"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
	"tendril/queue"
)

// ErrOff means that an environment runs but has no console to ask.
var ErrOff = errors.New("the console is off")

// Client asks the console of one running environment. All methods are safe for
// concurrent use. Their errors are [*Error] for what the console refused, and
// wrap [ErrNotRunning] when the environment is gone.
type Client struct {
	// Instance is the environment that answers.
	Instance Instance
	// Bodies asks for message bodies where they are hidden. Set it before the first call.
	Bodies bool

	conn *connection
	slow *connection // for answers that may come late
}

// Dial returns a client for the environment that runs on dataDir. It reads
// files only; the first request finds out whether the console answers. The
// error wraps [ErrNotRunning] when no environment runs there, [ErrOff] when it
// runs without a console. A token that this user may not read is not an error yet:
// health and counts need none.
func Dial(dataDir string) (*Client, error) {
	instance, err := ReadInstance(dataDir)
	if err != nil {
		return nil, err
	}
	if instance.Console == "" {
		return nil, &Error{cause: ErrOff,
			Message: fmt.Sprintf("environment %q on %s runs with its console off", instance.Environment, dataDir),
			Hint:    "start it with --console 127.0.0.1:9325 (or port 0 for a free one), or name a queue by its URL"}
	}
	token, err := ReadToken(dataDir)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the console's token: %w", err)
	}
	return newClient(newConnection(*instance, dataDir, token, 2*MaxWait),
		newConnection(*instance, dataDir, token, MaxDeploy+MaxWait)), nil
}

func newClient(conn, slow *connection) *Client {
	return &Client{Instance: conn.instance, conn: conn, slow: slow}
}

// NewClient returns a client of an instance that sends its requests through h, without a token of its own.
func NewClient(instance Instance, h *http.Client) *Client {
	c := &connection{instance: instance, http: h}
	return newClient(c, c)
}

// OnlyRead has the client refuse, from now on, every call that would change something.
func (c *Client) OnlyRead() { c.conn.onlyReads, c.slow.onlyReads = true, true }

// Close drops idle connections.
func (c *Client) Close() {
	c.conn.http.CloseIdleConnections()
	c.slow.http.CloseIdleConnections()
}

// Status returns what the environment says about itself. The error wraps
// [ErrNotRunning] when another process answers at its address.
func (c *Client) Status(ctx context.Context) (Status, error) {
	st, err := ask[Status](ctx, c.conn, "GET /api/v1/status", nil)
	if err == nil && st.PID != c.Instance.PID {
		return Status{}, notRunning(c.conn.dataDir)
	}
	return st, err
}

// Describe returns what the environment consists of.
func (c *Client) Describe(ctx context.Context) (Description, error) {
	return ask[Description](ctx, c.conn, "GET /api/v1/environment", nil)
}

// Examine looks for what is wrong with the environment, its machine and what it works with.
func (c *Client) Examine(ctx context.Context) (doctor.Examination, error) {
	return ask[doctor.Examination](ctx, c.conn, "GET /api/v1/doctor", nil)
}

// Health returns the health of the environment, with its causes.
func (c *Client) Health(ctx context.Context) (health.Report, error) {
	return ask[health.Report](ctx, c.conn, "GET /api/v1/health", nil)
}

// Series returns the curves of a range, "" for the shortest: one of [series.Ranges].
func (c *Client) Series(ctx context.Context, name string) (series.Curves, error) {
	query := url.Values{"range": {name}}
	return ask[series.Curves](ctx, c.conn, "GET /api/v1/series?"+query.Encode(), nil)
}

// Queues returns every embedded queue, sorted by name, without attributes.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	list, err := ask[QueueList](ctx, c.conn, "GET /api/v1/queues", nil)
	return list.Queues, err
}

// Queue returns one embedded queue with its attributes.
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	return ask[Queue](ctx, c.conn, "GET /api/v1/queues/{name}", nil, name)
}

// Filter selects messages to look at. The zero value is all of them.
type Filter struct {
	Selection
	State string // one of the Message constants
	After string // the cursor that the page before gave
	Limit int    // of one page, 1 to 1000; 0 means 100
}

// Messages returns one page of messages, oldest first, and the cursor of the next page: ""
// at the end. A page may be shorter than its limit before the end.
func (c *Client) Messages(ctx context.Context, name string, f Filter) (page []Message, next string, err error) {
	query := selectionQuery(&f.Selection)
	query.Set("state", f.State)
	query.Set("after", f.After)
	query.Set("limit", strconv.Itoa(cmp.Or(f.Limit, 100)))
	answer, err := ask[MessagePage](ctx, c.conn,
		"GET /api/v1/queues/{name}/messages?"+query.Encode()+bodyQuery(c.Bodies, "&"), nil, name)
	return answer.Messages, answer.Next, err
}

// bodyQuery is what asks for bodies, after a separator; "" where they are not asked for.
func bodyQuery(wanted bool, separator string) string {
	if wanted {
		return separator + "body=1"
	}
	return ""
}

// Message returns one message by its id.
func (c *Client) Message(ctx context.Context, name, id string) (Message, error) {
	return ask[Message](ctx, c.conn, "GET /api/v1/queues/{name}/messages/{id}"+bodyQuery(c.Bodies, "?"), nil, name, id)
}

// Reasons groups the messages of a queue, dead letters in the first place, by why they failed last: the largest group
// first.
func (c *Client) Reasons(ctx context.Context, name string) ([]ReasonGroup, error) {
	list, err := ask[ReasonList](ctx, c.conn, "GET /api/v1/queues/{name}/reasons", nil, name)
	return list.Reasons, err
}

// Deliveries returns up to limit deliveries, the most recent first; 100 when limit is 0.
func (c *Client) Deliveries(ctx context.Context, limit int) ([]Delivery, error) {
	list, err := ask[DeliveryList](ctx, c.conn, "GET /api/v1/deliveries"+limitQuery(limit), nil)
	return list.Deliveries, err
}

// Outcome returns the most recent delivery of a message, waiting up to wait for
// the end of the first one, or what is in work then. The bool is false when there is
// neither.
func (c *Client) Outcome(ctx context.Context, id string, wait time.Duration) (Delivery, bool, error) {
	until := time.Now().Add(wait)
	for {
		left := min(max(time.Until(until), 0), MaxWait)
		d, err := ask[Delivery](ctx, c.conn, "GET /api/v1/messages/{id}/outcome?wait="+left.String(), nil, id)
		unknown := (*Error)(nil)
		switch {
		case err == nil && (left < MaxWait || d.Outcome != InWork && d.Tried()):
			return d, true, nil
		case err != nil && (!errors.As(err, &unknown) || unknown.Status != http.StatusNotFound):
			return Delivery{}, false, err
		case err != nil && left < MaxWait:
			return Delivery{}, false, nil
		}
	}
}

// Pause stops the environment from receiving from a queue. The reason, of up to 200
// bytes, is shown with the status.
func (c *Client) Pause(ctx context.Context, name, why string) error {
	return command(ctx, c.conn, "POST /api/v1/queues/{name}/pause", Reason{why}, name)
}

// Resume undoes Pause.
func (c *Client) Resume(ctx context.Context, name string) error {
	return command(ctx, c.conn, "POST /api/v1/queues/{name}/resume", nothing, name)
}

// Quiet stops the environment from receiving at all; it goes on running.
func (c *Client) Quiet(ctx context.Context, why string) error {
	return command(ctx, c.conn, "POST /api/v1/quiet", Reason{why})
}

// ResumeAll undoes Quiet.
func (c *Client) ResumeAll(ctx context.Context) error {
	return command(ctx, c.conn, "POST /api/v1/resume", nothing)
}

// Purge removes all messages of a queue and returns how many there were. What a person typed to confirm it must be
// the name of the queue.
func (c *Client) Purge(ctx context.Context, name, confirm string, through int64) (int, error) {
	n, err := ask[Count](ctx, c.conn, "POST /api/v1/queues/{name}/purge", Confirmation{confirm, through}, name)
	return n["purged"], err
}

// CreateQueue creates an embedded queue with SQS attributes, and returns its ARN. A queue
// that exists with the same attributes is not an error.
func (c *Client) CreateQueue(ctx context.Context, name string, attributes map[string]string) (arn string, err error) {
	answer, err := ask[Created](ctx, c.conn, "POST /api/v1/queues", Creation{name, attributes})
	return answer.ARN, err
}

// DeleteQueue deletes an embedded queue and returns how many messages it held. What a person typed to confirm it must
// be the name of the queue. One that the environment works on, or that takes dead letters of another, is refused.
func (c *Client) DeleteQueue(ctx context.Context, name, confirm string) (int, error) {
	query := url.Values{"confirm": {confirm}}
	n, err := ask[Count](ctx, c.conn, "DELETE /api/v1/queues/{name}?"+query.Encode(), nil, name)
	return n["deleted"], err
}

// Send sends up to ten messages to an embedded queue and returns a result for each, in
// order, once they are on disk. The error is for the whole call.
func (c *Client) Send(ctx context.Context, name string, msgs []queue.Outgoing) ([]queue.Sent, error) {
	body := SendRequest{Messages: make([]Outgoing, len(msgs))}
	for i := range msgs {
		body.Messages[i] = fromQueue(&msgs[i])
	}
	answer, err := ask[SendAnswer](ctx, c.conn, "POST /api/v1/queues/{name}/messages", body, name)
	if err != nil {
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

// Drain asks the environment to drain and stop, and waits up to wait for it.
// It returns true when all work is settled, false when the drain goes on. An
// environment that vanishes after it agreed to drain is drained. The [Error] of a
// drain that is over and cut work off is Late.
func (c *Client) Drain(ctx context.Context, wait time.Duration) (bool, error) {
	until := time.Now().Add(wait)
	for agreed := false; ; agreed = true {
		left := max(time.Until(until), 0)
		d, err := ask[Drained](ctx, c.conn, "POST /api/v1/drain", DrainRequest{min(left, MaxWait).String()})
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

// Deploy replaces the version of the app: see [Options].Deploy. The error has status 422
// when the deployment went wrong, and 409 when it could not be begun. A ctx that ends does
// not end the deployment.
func (c *Client) Deploy(ctx context.Context, path string) (DeployResult, error) {
	return ask[DeployResult](ctx, c.slow, "POST /api/v1/deploy", DeployRequest{path})
}

// Reload puts in force what changed, as the signal HUP does: see [Options].Reload. The
// error has a [Detail] for each thing that is wrong in the file of tasks, and the status of
// [Client.Deploy].
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	return ask[ReloadResult](ctx, c.slow, "POST /api/v1/reload", nothing)
}

// nothing is the body of an act without parameters.
var nothing = struct{}{}
