package console

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tendril/health"
	"tendril/queue"
)

// ErrOff means that an environment runs but has no console to ask.
var ErrOff = errors.New("the console is off")

// maxAnswer bounds what a client reads of one answer; a page of messages ends
// well below it.
const maxAnswer = 256 << 20

// Client asks the console of one running environment. All methods are safe for
// concurrent use. Their errors are [*Error] for what the console refused, and
// wrap [ErrNotRunning] when the environment is gone.
type Client struct {
	// Instance is the environment that answers.
	Instance Instance

	dataDir string
	token   string
	http    *http.Client
	// slow is http for answers that may come late.
	slow *http.Client
}

// Dial returns a client for the environment that runs on dataDir. It reads
// files only; the first request finds out whether the console answers. The
// error wraps [ErrNotRunning] when no environment runs there, [ErrOff] when it
// runs without a console. A token that this user may not read is no error yet:
// health and counts need none.
func Dial(dataDir string) (*Client, error) {
	instance, err := ReadInstance(dataDir)
	if err != nil {
		return nil, err
	}
	if instance.Console == "" {
		return nil, &Error{
			Message: fmt.Sprintf("environment %q on %s runs with its console off", instance.Environment, dataDir),
			Hint:    "start it with --console 127.0.0.1:9325 (or port 0 for a free one), or name a queue by its URL",
			cause:   ErrOff,
		}
	}
	token, err := ReadToken(dataDir)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the console's token: %w", err)
	}
	c := &Client{Instance: *instance, dataDir: dataDir, token: token}
	c.http, c.slow = c.httpClient(2*MaxWait), c.httpClient(MaxDeploy+MaxWait)
	return c, nil
}

// httpClient returns one that waits for the beginning of an answer for up to
// patience, and follows nobody elsewhere.
func (c *Client) httpClient(patience time.Duration) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			// Whatever name it bears and whoever signed it: there is one certificate
			// that is trusted.
			TLSClientConfig:       &tls.Config{InsecureSkipVerify: true, VerifyConnection: c.checkCertificate},
			DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
			ResponseHeaderTimeout: patience,
			IdleConnTimeout:       10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// checkCertificate accepts the certificate that the instance file names, and no
// other. The file is read again for one that is new since Dial.
func (c *Client) checkCertificate(s tls.ConnectionState) error {
	shown := fingerprint(s.PeerCertificates[0].Raw)
	if shown == c.Instance.ConsoleCertificate {
		return nil
	}
	if i, err := ReadInstance(c.dataDir); err == nil && shown == i.ConsoleCertificate {
		return nil
	}
	return &Error{
		Message: "its certificate is not the one that " + filepath.Join(c.dataDir, InstanceFile) + " names",
		Hint:    "another program may listen there; name the environment's own --data-dir, or restart it",
	}
}

// Close drops idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.slow.CloseIdleConnections()
}

// call sends one request and decodes its answer into a value; body and into
// may be nil. It returns the HTTP status.
func (c *Client) call(ctx context.Context, method, path string, body, into any) (int, error) {
	return c.callBy(ctx, c.http, method, path, body, into)
}

func (c *Client) callBy(ctx context.Context, client *http.Client, method, path string, body, into any) (int, error) {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Instance.ConsoleURL()+path, payload)
	if err != nil {
		return 0, fmt.Errorf("asking the console at %s: %w", c.Instance.Console, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, c.trouble(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return resp.StatusCode, c.trouble(err)
	}
	return resp.StatusCode, c.decode(resp.StatusCode, data, into)
}

// trouble explains why there is no answer.
func (c *Client) trouble(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || !ProcessAlive(c.Instance.PID) {
		return notRunning(c.dataDir)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("asking the console at %s: %w", c.Instance.Console, err)
}

func (c *Client) decode(status int, data []byte, into any) error {
	if status >= 200 && status <= 299 || status == http.StatusServiceUnavailable && wants503(into) {
		if into == nil {
			return nil
		}
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("the console at %s answered what this program does not understand: %w", c.Instance.Console, err)
		}
		return nil
	}
	refusal := &Error{Status: status}
	if json.Unmarshal(data, refusal) != nil || refusal.Message == "" {
		refusal.Message = fmt.Sprintf("the console at %s answered %d %s", c.Instance.Console, status, http.StatusText(status))
	}
	if status == http.StatusUnauthorized {
		return c.unauthorized(refusal)
	}
	return refusal
}

// wants503 tells the one answer that is meant to be read whatever its status.
func wants503(into any) bool {
	_, ok := into.(*readiness)
	return ok
}

// unauthorized says where the token would have come from.
func (c *Client) unauthorized(refusal *Error) error {
	if c.token == "" {
		if _, err := ReadToken(c.dataDir); errors.Is(err, fs.ErrPermission) {
			return foreign(filepath.Join(c.dataDir, TokenFile))
		}
		refusal.Hint = "there is no " + TokenFile + " in " + c.dataDir + "; restart the environment to have one written"
		return refusal
	}
	refusal.Message = "the console at " + c.Instance.Console + " does not know the token of " + c.dataDir
	refusal.Hint = "another environment may listen there; name its --data-dir"
	return refusal
}

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

// taskPath is the path of a task. Its name may be any text, "/" and ".."
// included: dots are escaped so that nobody takes them for steps.
func taskPath(name, rest string) string {
	return "/api/v1/tasks/" + strings.ReplaceAll(url.PathEscape(name), ".", "%2E") + rest
}

// Tasks returns the periodic tasks as they stand, and who leads. The error has
// status 409 when the environment has none.
func (c *Client) Tasks(ctx context.Context) (TasksStatus, error) {
	var st TasksStatus
	_, err := c.call(ctx, http.MethodGet, "/api/v1/tasks", nil, &st)
	return st, err
}

// TaskHistory returns up to limit runs, the newest first, of one task or for ""
// of all: 1 to 1000, 100 when limit is 0. The error has status 404 when there is
// no such task.
func (c *Client) TaskHistory(ctx context.Context, name string, limit int) ([]TaskRun, error) {
	path := "/api/v1/history"
	if name != "" {
		path = taskPath(name, "/history")
	}
	if limit != 0 {
		path += "?limit=" + strconv.Itoa(limit)
	}
	var list runList
	_, err := c.call(ctx, http.MethodGet, path, nil, &list)
	return list.Runs, err
}

// RunTask enqueues one run of a task at once, also of a paused one. The error has
// status 404 when there is no such task; after one of status 503 the run may
// have been enqueued all the same.
func (c *Client) RunTask(ctx context.Context, name string) (TaskRun, error) {
	var run TaskRun
	_, err := c.call(ctx, http.MethodPost, taskPath(name, "/run"), nothing{}, &run)
	return run, err
}

// PauseTask leaves out the runs of a task until ResumeTask. The reason is shown
// to everybody who asks; up to 200 bytes.
func (c *Client) PauseTask(ctx context.Context, name, why string) error {
	_, err := c.call(ctx, http.MethodPost, taskPath(name, "/pause"), reason{why}, nil)
	return err
}

// ResumeTask undoes PauseTask.
func (c *Client) ResumeTask(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodPost, taskPath(name, "/resume"), nothing{}, nil)
	return err
}

// Reload makes the environment put in force what changed in its folder since it
// was started, as the signal HUP does, and returns what that was. The error has a
// [Detail] for each thing that is wrong in the file of tasks, status 422 when a
// deployment was begun and went wrong, as with [Client.Deploy], and 409 when there
// is nothing to reload or a deployment is under way. What was in force then stays.
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	var done ReloadResult
	_, err := c.callBy(ctx, c.slow, http.MethodPost, "/api/v1/reload", nothing{}, &done)
	return done, err
}
