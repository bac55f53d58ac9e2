package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/observe/doctor"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
	"tendril/queue"
)

// ErrOff means that the environment's console is off.
var ErrOff = errors.New("the console is off")

// Client calls the console of a running environment. It is safe for concurrent use. Refused requests return an
// [*Error]; if the environment is gone, the error wraps [ErrNotRunning].
type Client struct {
	Instance Instance
	// Bodies requests hidden message bodies. It must not change during a call.
	Bodies bool

	transport Transport
	dataDir   string // "" after [NewClient]
	onlyReads bool
	instance  string // instance to read from; "" for the console's own
}

// Dial returns a client for the environment running on dataDir, without connecting. The error wraps [ErrNotRunning]
// or [ErrOff]. If the token is not readable, the client can still read health and counts.
func Dial(dataDir string) (*Client, error) {
	instance, err := ReadInstance(dataDir)
	if err != nil {
		return nil, err
	}
	if instance.Console == "" {
		return nil, &Error{cause: ErrOff,
			Message: fmt.Sprintf("environment %q on %s has its console off", instance.Environment, dataDir),
			Hint:    "start it with --console 127.0.0.1:9325 (or port 0 for a free one), or name a queue by its URL"}
	}
	token, err := ReadToken(dataDir)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the console's token: %w", err)
	}
	return &Client{Instance: *instance, transport: newConnection(*instance, dataDir, token), dataDir: dataDir}, nil
}

// NewClient returns a client that uses transport.
func NewClient(instance Instance, transport Transport) *Client {
	return &Client{Instance: instance, transport: transport}
}

// Transport sends the requests of a [Client].
type Transport interface {
	// Answer sends r and decodes the response into a pointer to the route's answer type. A refusal is an [*Error].
	Answer(ctx context.Context, r *Request, into any) error
}

// Request is a call to a [Route].
type Request struct {
	Pattern string
	Names   []string
	Query   url.Values
	Body    any
	Limit   time.Duration
}

// Path returns the request's path with each name escaped. Names may contain any text, including "/" and "..".
func (r *Request) Path(escape func(string) string) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	names := r.Names
	return wildcard.ReplaceAllStringFunc(path, func(string) (name string) {
		name, names = names[0], names[1:]
		return escape(name)
	})
}

var wildcard = regexp.MustCompile(`{\w+}`)

func (r Route[Body, Answer]) request(query url.Values, names ...string) *Request {
	return &Request{Pattern: r.Pattern, Names: names, Query: query, Limit: r.Limit}
}

func (r Route[Body, Answer]) do(ctx context.Context, c *Client, query url.Values, names ...string) (Answer, error) {
	var answer Answer
	err := c.answer(ctx, r.request(query, names...), &answer)
	return answer, err
}

func (r Route[Body, Answer]) send(ctx context.Context, c *Client, body Body, names ...string) (Answer, error) {
	var answer Answer
	request := r.request(nil, names...)
	request.Body = body
	err := c.answer(ctx, request, &answer)
	return answer, err
}

// ErrOnlyReads is returned for changes after [Client.OnlyRead].
var ErrOnlyReads = errors.New("this client only reads")

// On returns a client that reads from the instance with the given [KnownInstance].ID through the same console. ""
// means the console's own instance.
func (c *Client) On(id string) *Client {
	on := *c
	on.instance, on.onlyReads = id, c.onlyReads || id != ""
	return &on
}

func (c *Client) withInstance(r *Request) *Request {
	if c.instance == "" {
		return r
	}
	query := url.Values{"instance": {c.instance}}
	maps.Copy(query, r.Query)
	on := *r
	on.Query = query
	return &on
}

func (c *Client) answer(ctx context.Context, r *Request, into any) error {
	isRead := strings.HasPrefix(r.Pattern, http.MethodGet) || r.Pattern == PreviewSettings.Pattern
	if c.onlyReads && !isRead {
		return fmt.Errorf("%s: %w", r.Pattern, ErrOnlyReads)
	}
	return c.transport.Answer(ctx, c.withInstance(r), into)
}

// Filter selects messages to list. The zero value selects the first 100.
type Filter struct {
	Selection
	State string
	After string // cursor from the previous page
	Limit int    // 1 to 1000; 0 means 100
}

func (c *Client) withBodies(query url.Values) url.Values {
	if c.Bodies {
		query.Set("body", "1")
	}
	return query
}

// OnlyRead makes later calls that would change something fail with [ErrOnlyReads].
func (c *Client) OnlyRead() { c.onlyReads = true }

// Close closes idle connections.
func (c *Client) Close() {
	if conn, ok := c.transport.(*connection); ok {
		conn.Close()
	}
}

// Status returns the environment's status. The error wraps [ErrNotRunning] if a different process answers.
func (c *Client) Status(ctx context.Context) (Status, error) {
	st, err := GetStatus.do(ctx, c, nil)
	if err == nil && st.PID != c.Instance.PID && c.instance == "" {
		return Status{}, notRunning(c.dataDir)
	}
	return st, err
}

// Describe returns the environment's components and settings.
func (c *Client) Describe(ctx context.Context) (Description, error) {
	return GetEnvironment.do(ctx, c, nil)
}

// Examine returns problems of the environment, its machine and services.
func (c *Client) Examine(ctx context.Context) (doctor.Examination, error) {
	return GetExamination.do(ctx, c, nil)
}

// Health returns the environment's health and its causes.
func (c *Client) Health(ctx context.Context) (health.Report, error) {
	return GetHealth.do(ctx, c, nil)
}

// Series returns the curves of a range from [series.Ranges]; "" means the shortest.
func (c *Client) Series(ctx context.Context, name string) (series.Curves, error) {
	return GetSeries.do(ctx, c, url.Values{"range": {name}})
}

// Queues returns the embedded queues without attributes, sorted by name.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	list, err := GetQueues.do(ctx, c, nil)
	return list.Queues, err
}

// Queue returns an embedded queue with its attributes.
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	return GetQueue.do(ctx, c, nil, name)
}

// Messages returns a page of messages, oldest first, perhaps shorter than the limit. next is the cursor of the next
// page, or "" on the last one.
func (c *Client) Messages(ctx context.Context, name string, f Filter) (page []Message, next string, err error) {
	query := selectionQuery(&f.Selection)
	set(query, "state", f.State)
	set(query, "after", f.After)
	setNumber(query, "limit", int64(f.Limit))
	answer, err := GetMessages.do(ctx, c, c.withBodies(query), name)
	return answer.Messages, answer.Next, err
}

// Message returns a message by ID.
func (c *Client) Message(ctx context.Context, name, id string) (Message, error) {
	return GetMessage.do(ctx, c, c.withBodies(url.Values{}), name, id)
}

// Reasons groups a queue's messages by the reason of their last failure, largest group first.
func (c *Client) Reasons(ctx context.Context, name string) ([]ReasonGroup, error) {
	list, err := GetReasons.do(ctx, c, nil, name)
	return list.Reasons, err
}

// Deliveries returns up to limit deliveries, newest first; 0 means 100.
func (c *Client) Deliveries(ctx context.Context, limit int) ([]Delivery, error) {
	list, err := GetDeliveries.do(ctx, c, limitQuery(limit))
	return list.Deliveries, err
}

// FindMessage finds a message in any embedded queue by its ID or a prefix of at least four characters. If it is no
// longer stored, the error describes its last outcome, if known.
func (c *Client) FindMessage(ctx context.Context, id string) (Message, error) {
	queues, err := c.Queues(ctx)
	if err != nil && !HasStatus(err, http.StatusConflict) { // the status means that all queues are on Amazon SQS
		return Message{}, err
	}
	for _, q := range queues {
		if m, err := c.Message(ctx, q.Name, id); !HasStatus(err, http.StatusNotFound) {
			return m, err
		}
	}

	d, err := c.LastOutcome(ctx, id)
	if err != nil {
		return Message{}, err
	}
	if d.MessageID != id { // the ID was a prefix
		return c.FindMessage(ctx, d.MessageID)
	}
	state, hint := d.state()
	return Message{}, NotFound("message "+d.MessageID+" "+state, hint)
}

// LastOutcome returns a message's latest outcome on any instance, by ID or prefix. A message that was neither
// delivered nor removed is found only in an embedded queue, and only by a prefix.
func (c *Client) LastOutcome(ctx context.Context, id string) (Delivery, error) {
	ask := func(ctx context.Context, on *Client) (Delivery, error) { return GetOutcome.do(ctx, on, nil, id) }
	latest, err := ask(ctx, c)
	refusal, _ := errors.AsType[*Error](err)
	if err != nil && !HasStatus(err, http.StatusNotFound) {
		return latest, err
	}

	known, _ := c.Instances(ctx) // without a list, only c's instance is asked
	others := slices.DeleteFunc(known.Readable(), func(one KnownInstance) bool { return one.This })
	var unsearched strings.Builder
	for _, a := range FromEach(ctx, c, others, ask) {
		switch {
		case a.Err == nil && !a.Answer.At.Before(latest.At):
			latest = a.Answer
		case a.Err != nil && !HasStatus(a.Err, http.StatusNotFound):
			unsearched.WriteString("; " + a.Instance.Name + " was not searched: " + a.Err.Error())
		}
	}

	if latest.MessageID == "" && refusal != nil {
		return latest, NotFound("message "+id+" not found in any queue", refusal.Hint+unsearched.String())
	}
	return latest, nil
}

func (d *Delivery) state() (text, hint string) {
	const (
		notFound  = "not found in any queue: "
		elsewhere = "messages on Amazon SQS or another server cannot be looked up by ID"
	)
	clock := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
	because := ""
	if d.Reason != "" {
		because = ": " + d.Reason
	}

	switch {
	case d.Done():
		text = fmt.Sprintf("%scompleted by %s at %s", notFound, d.Queue, clock(d.At))
		if d.Attempt > 0 {
			text += fmt.Sprintf(", attempt %d", d.Attempt)
		}
		return text, "completed messages are not kept"
	case d.Outcome == InWork:
		return fmt.Sprintf("is being delivered from %s, attempt %d", d.Queue, d.Attempt), elsewhere
	case d.RetryAt.After(time.Now()):
		return fmt.Sprintf("waits in %s for its next attempt at %s: attempt %d ended %s%s", d.Queue, clock(d.RetryAt),
			d.Attempt, d.Outcome, because), elsewhere
	case d.Outcome == queue.Failed.String() || d.Outcome == queue.Unreached.String():
		return fmt.Sprintf("%sits last attempt in %s ended %s at %s%s", notFound, d.Queue, d.Outcome, clock(d.At), because),
			"it was deleted or has expired since; on Amazon SQS it may wait again or be in the dead-letter queue"
	}
	text = fmt.Sprintf("%s%s from %s at %s %s", notFound, d.Outcome, d.Queue, clock(d.At), d.Reason)
	return strings.TrimSuffix(text, " "), goneHints[d.Outcome]
}

var goneHints = map[string]string{
	MessageDeleted:      "'tendril events' shows who deletes messages",
	MessageExpired:      "a retention period or deadline lets messages expire",
	MessageDeadLettered: "'tendril dead list' shows dead letters, which have another ID on Amazon SQS",
}

// Outcome returns a message's latest outcome, or false if none is known. It waits up to wait for the end of an attempt.
func (c *Client) Outcome(ctx context.Context, id string, wait time.Duration) (Delivery, bool, error) {
	until := time.Now().Add(wait)
	for {
		left := min(max(time.Until(until), 0), MaxWait)
		isLast := left < MaxWait
		d, err := GetOutcome.do(ctx, c, url.Values{"wait": {left.String()}}, id)
		switch {
		case err == nil && (isLast || d.Outcome != InWork && d.Tried()):
			return d, true, nil
		case err != nil && !HasStatus(err, http.StatusNotFound):
			return Delivery{}, false, err
		case isLast:
			return Delivery{}, false, nil
		}
	}
}

// Pause stops receiving from the named queue, or from all queues if name is "".
func (c *Client) Pause(ctx context.Context, name string, why Reason) (Paused, error) {
	if name == "" {
		return PauseAll.send(ctx, c, why)
	}
	return PauseQueue.send(ctx, c, why, name)
}

// Resume undoes Pause.
func (c *Client) Resume(ctx context.Context, name string, where Reason) (Paused, error) {
	if name == "" {
		return ResumeAll.send(ctx, c, where)
	}
	return ResumeQueue.send(ctx, c, where, name)
}

// Purge deletes a queue's messages up to a position and returns their number. confirm must be the queue's name.
func (c *Client) Purge(ctx context.Context, name, confirm string, through int64) (int, error) {
	n, err := PurgeQueue.send(ctx, c, Confirmation{confirm, through}, name)
	return n["purged"], err
}

// CreateQueue creates an embedded queue, unless it exists with the same attributes, and returns its ARN.
func (c *Client) CreateQueue(ctx context.Context, name string, attributes map[string]string) (arn string, err error) {
	answer, err := CreateQueue.send(ctx, c, Creation{name, attributes})
	return answer.ARN, err
}

// DeleteQueue deletes an embedded queue and returns its number of messages. confirm must be the queue's name. The
// environment's own queues and dead-letter queues in use cannot be deleted.
func (c *Client) DeleteQueue(ctx context.Context, name, confirm string) (int, error) {
	n, err := DeleteQueue.do(ctx, c, url.Values{"confirm": {confirm}}, name)
	return n["deleted"], err
}

// Send sends up to ten messages to an embedded queue. It returns their results, in order, once they are on disk. If a
// message is not valid UTF-8, none is sent.
func (c *Client) Send(ctx context.Context, name string, msgs []queue.Outgoing) ([]queue.Sent, error) {
	body := SendRequest{Messages: make([]Outgoing, len(msgs))}
	for i := range msgs {
		if !msgs[i].IsValidUTF8() {
			return nil, errNotUTF8()
		}
		body.Messages[i] = fromQueue(&msgs[i])
	}

	answer, err := SendMessages.send(ctx, c, body, name)
	if err != nil {
		return nil, err
	}

	if len(answer.Results) != len(msgs) {
		return nil, fmt.Errorf("the console at %s returned %d results for %d messages", c.Instance.Console,
			len(answer.Results), len(msgs))
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

func errNotUTF8() *Error {
	return BadRequest("the message is not valid UTF-8", "send bytes as a Binary attribute, or encode them with base64")
}

// Drain asks the environment to drain and stop. It returns true once all messages are settled or the environment is
// gone, and false after wait. The [Error] has Late set if the drain ended before all work was done.
func (c *Client) Drain(ctx context.Context, wait time.Duration) (bool, error) {
	until := time.Now().Add(wait)
	isDraining := false
	for {
		left := max(time.Until(until), 0)
		d, err := Drain.send(ctx, c, DrainRequest{min(left, MaxWait).String()})
		switch {
		case isDraining && errors.Is(err, ErrNotRunning):
			return true, nil
		case err != nil:
			return false, err
		case d.Drained || left <= MaxWait:
			return d.Drained, nil
		}
		isDraining = true
	}
}

// Deploy deploys the folder or archive at path; "" means the current version's. The error has status 422 if the
// deployment failed, 404 if path does not exist, and 409 if the deployment could not start. Canceling ctx does not stop
// the deployment.
func (c *Client) Deploy(ctx context.Context, path string) (DeployResult, error) {
	return Deploy.send(ctx, c, DeployRequest{path})
}

// Reload applies changed files, like SIGHUP. Errors are as for Deploy. If the file with the periodic tasks is invalid,
// the error has status 400 and a [Detail] for each problem.
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	return Reload.send(ctx, c, NoBody{})
}

// Count counts selected messages of an embedded queue for at most the time within; 0 means the server's limit.
func (c *Client) Count(ctx context.Context, name string, sel Selection, within time.Duration) (Total, error) {
	query := selectionQuery(&sel)
	if within > 0 {
		query.Set("wait", within.String())
	}
	return CountMessages.do(ctx, c, c.withBodies(query), name)
}

// Retry makes a message visible immediately.
func (c *Client) Retry(ctx context.Context, name, id string) (Placed, error) {
	return RetryMessage.send(ctx, c, NoBody{}, name, id)
}

// Delay hides a message for the given time, at most 12 hours, rounded up to whole seconds.
func (c *Client) Delay(ctx context.Context, name, id string, delay time.Duration) (Placed, error) {
	return DelayMessage.send(ctx, c, DelayRequest{int((delay + time.Second - 1) / time.Second)}, name, id)
}

// Edit atomically replaces a message with msg, as in [EditRequest], and returns the new ID.
func (c *Client) Edit(ctx context.Context, name, id, to string, msg Outgoing) (string, error) {
	if out := msg.ToQueue(); !out.IsValidUTF8() {
		return "", errNotUTF8()
	}
	answer, err := EditMessage.send(ctx, c, EditRequest{msg, to}, name, id)
	if err != nil {
		return "", err
	}
	if len(answer.Results) != 1 {
		return "", fmt.Errorf("the console at %s returned %d results for one message", c.Instance.Console,
			len(answer.Results))
	}
	return answer.Results[0].ID, nil
}

// Move moves up to 1000 messages, as in [MoveRequest], and returns their number.
func (c *Client) Move(ctx context.Context, from, to string, ids []string) (int, error) {
	n, err := MoveMessages.send(ctx, c, MoveRequest{IDs: ids, To: to}, from)
	return n["moved"], err
}

// Delete deletes up to 1000 messages and returns their number. If there is more than one ID, confirm must be the
// number of IDs.
func (c *Client) Delete(ctx context.Context, name string, ids []string, confirm int64) (int, error) {
	answer, err := DeleteMessages.send(ctx, c, Deletion{IDs: ids, Confirm: confirm}, name)
	return answer.Deleted, err
}

// DeleteMatching starts a task that deletes selected dead letters, as in [Deletion].
func (c *Client) DeleteMatching(ctx context.Context, name string, sel Selection, rate int,
	confirm int64) (MoveTask, error) {
	answer, err := DeleteMessages.send(ctx, c, Deletion{Filter: &sel, Rate: rate, Confirm: confirm}, name)
	if err != nil {
		return MoveTask{}, err
	}
	if answer.Task == nil {
		return MoveTask{}, fmt.Errorf("the console at %s started no task", c.Instance.Console)
	}
	return *answer.Task, nil
}

// Tasks returns the periodic tasks and the leader.
func (c *Client) Tasks(ctx context.Context) (TasksStatus, error) {
	return GetTasks.do(ctx, c, nil)
}

// TaskHistory returns up to limit runs, newest first; 0 means 100. An empty name means all tasks.
func (c *Client) TaskHistory(ctx context.Context, name string, limit int) ([]TaskRun, error) {
	if name == "" {
		list, err := GetHistory.do(ctx, c, limitQuery(limit))
		return list.Runs, err
	}
	list, err := GetTaskHistory.do(ctx, c, limitQuery(limit), name)
	return list.Runs, err
}

// RunTask enqueues a run of a task at once, even a paused one. With status 503, the run may nevertheless be enqueued.
func (c *Client) RunTask(ctx context.Context, name string) (TaskRun, error) {
	return RunTask.send(ctx, c, NoBody{}, name)
}

// PauseTask skips a task's runs on all instances until ResumeTask.
func (c *Client) PauseTask(ctx context.Context, name, why string) error {
	_, err := PauseTask.send(ctx, c, Reason{Reason: why}, name)
	return err
}

// ResumeTask undoes PauseTask.
func (c *Client) ResumeTask(ctx context.Context, name string) error {
	_, err := ResumeTask.send(ctx, c, NoBody{}, name)
	return err
}

// Receive receives messages from an embedded queue like an SQS consumer.
func (c *Client) Receive(ctx context.Context, name string, req ReceiveRequest) ([]ReceivedMessage, error) {
	list, err := ReceiveMessages.send(ctx, c, req, name)
	return list.Messages, err
}

// Acknowledge deletes up to ten messages by receipt handle and returns their number.
func (c *Client) Acknowledge(ctx context.Context, name string, handles []string) (int, error) {
	n, err := AcknowledgeMessages.send(ctx, c, Receipts{handles}, name)
	return n["deleted"], err
}

// Redrive starts a task that moves selected messages of a dead-letter queue, as in [RedriveRequest].
func (c *Client) Redrive(ctx context.Context, name, to string, rate int, sel Selection, most int64) (MoveTask,
	error) {
	return StartRedrive.send(ctx, c, RedriveRequest{to, rate, sel, most}, name)
}

// RedriveTask returns the latest task of a dead-letter queue.
func (c *Client) RedriveTask(ctx context.Context, name string) (MoveTask, error) {
	return GetRedrive.do(ctx, c, nil, name)
}

// CancelRedrive cancels a dead-letter queue's running task, without undoing moves and deletions.
func (c *Client) CancelRedrive(ctx context.Context, name string) (MoveTask, error) {
	return CancelRedrive.do(ctx, c, nil, name)
}

// RecordExchanges records requests to the app and its responses for a time, at most [MaxRecording].
func (c *Client) RecordExchanges(ctx context.Context, span time.Duration) error {
	_, err := RecordExchanges.send(ctx, c, RecordRequest{min(span, MaxRecording).String()})
	return err
}

// Exchange returns the last recorded exchange of a message, or an error with status 404.
func (c *Client) Exchange(ctx context.Context, id string) (Exchange, error) {
	return GetExchange.do(ctx, c, url.Values{"body": {"1"}}, id)
}

// Configuration returns all options in force and describes the settings file.
func (c *Client) Configuration(ctx context.Context) (Configuration, error) {
	return GetConfiguration.do(ctx, c, nil)
}

// PreviewChange returns the effect of a settings change. The error has a [Detail] for each invalid option.
func (c *Client) PreviewChange(ctx context.Context, change SettingsChange) (SettingsPreview, error) {
	return PreviewSettings.send(ctx, c, change)
}

// ChangeSettings writes a change and applies the settings that need no restart. If the base is outdated, the error
// has status 409.
func (c *Client) ChangeSettings(ctx context.Context, change SettingsChange) (SettingsPreview, error) {
	return ChangeSettings.send(ctx, c, change)
}

// Versions returns the app's deployed versions, newest first. In a fleet, the list may be seconds old.
func (c *Client) Versions(ctx context.Context) ([]AppVersion, error) {
	return c.versions(ctx, nil)
}

// LatestVersions is like Versions, but reads a fleet's registry first.
func (c *Client) LatestVersions(ctx context.Context) ([]AppVersion, error) {
	return c.versions(ctx, url.Values{"latest": {"true"}})
}

func (c *Client) versions(ctx context.Context, query url.Values) ([]AppVersion, error) {
	list, err := GetVersions.do(ctx, c, query)
	return list.Versions, err
}

// Rollback redeploys a version by number; 0 means the previous one. Errors are as for Deploy, with status 404 for an
// unknown version.
func (c *Client) Rollback(ctx context.Context, number int) (DeployResult, error) {
	return Rollback.send(ctx, c, RollbackRequest{number})
}

// AbortDeploy aborts the deployment in progress and returns it once it has ended. The error has status 409 if no
// deployment is in progress or the new version is already serving.
func (c *Client) AbortDeploy(ctx context.Context) (Deployment, error) {
	return AbortDeploy.send(ctx, c, NoBody{})
}

// RestartProcess restarts a process of the app and returns the name of its replacement. A replica is replaced without
// interruption; a helper is restarted after it has exited. "web-2" is the second replica, unless a process has that
// name. Errors are as for Deploy, with status 404 for an unknown process and 409 for a draining replica.
func (c *Client) RestartProcess(ctx context.Context, name string) (now string, err error) {
	done, err := RestartProcess.send(ctx, c, NoBody{}, name)
	return done.Process, err
}

// ScaleDecisions returns the latest scaling decisions.
func (c *Client) ScaleDecisions(ctx context.Context) (ScaleDecisions, error) {
	return GetScaleDecisions.do(ctx, c, nil)
}

// Scale returns the backlog and desired size.
func (c *Client) Scale(ctx context.Context) (autoscale.Scale, error) {
	return GetScale.do(ctx, c, nil)
}

// Instances returns the environment's known instances.
func (c *Client) Instances(ctx context.Context) (Instances, error) {
	return GetInstances.do(ctx, c, nil)
}

// Events returns selected events.
func (c *Client) Events(ctx context.Context, f EventFilter) ([]eventlog.Event, error) {
	list, err := GetEvents.do(ctx, c, f.query())
	return list.Events, err
}

// FollowEvents calls each for every selected event as it occurs, starting after f.After or, if that is 0, with the
// next event. It returns nil when the environment ends the stream.
func (c *Client) FollowEvents(ctx context.Context, f EventFilter, each func(eventlog.Event) error) error {
	return follow(ctx, c, GetEvents.request(f.query()), each)
}

// Logs returns selected log lines.
func (c *Client) Logs(ctx context.Context, f LineFilter) ([]eventlog.Line, error) {
	list, err := GetLogs.do(ctx, c, f.query())
	return list.Lines, err
}

// FollowLogs is like FollowEvents for log lines.
func (c *Client) FollowLogs(ctx context.Context, f LineFilter, each func(eventlog.Line) error) error {
	return follow(ctx, c, GetLogs.request(f.query()), each)
}

// NewLogin returns a login link for one browser. It requires the owner's token.
func (c *Client) NewLogin(ctx context.Context, scopes ...string) (string, error) {
	link, err := NewLogin.send(ctx, c, LoginRequest{scopes})
	return c.Instance.ConsoleURL() + link.Path, err
}

// Caller returns the client's identity and scopes.
func (c *Client) Caller(ctx context.Context) (Caller, error) {
	return GetCaller.do(ctx, c, nil)
}
