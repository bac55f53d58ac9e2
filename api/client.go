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
	"strings"
	"tendril/internal/autoscale"
	"tendril/internal/observe/doctor"
	"tendril/internal/observe/eventlog"
	"tendril/internal/observe/health"
	"tendril/internal/observe/series"
	"tendril/queue"
	"time"
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

	transport Transport
	dataDir   string // "" for a client that [NewClient] returned
	onlyReads bool
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
	return &Client{Instance: *instance, transport: newConnection(*instance, dataDir, token), dataDir: dataDir}, nil
}

// NewClient returns a client of an instance whose requests a transport answers.
func NewClient(instance Instance, transport Transport) *Client {
	return &Client{Instance: instance, transport: transport}
}

// Transport takes the requests of a [Client] to a console.
type Transport interface {
	// Answer sends a request and stores the answer in into, a pointer to the route's type. An [*Error] is a refusal.
	Answer(ctx context.Context, r *Request, into any) error
}

// Request is a request by a route.
type Request struct {
	Pattern string
	Names   []string // of the path, in order
	Query   url.Values
	Body    any // nil for a request without a body
	Limit   time.Duration
}

// Path is the path of the request. Names may be any text, "/" and ".." included: they pass through escape.
func (r *Request) Path(escape func(string) string) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	for _, name := range r.Names {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + escape(name) + after
	}
	return path
}

func (r Route[Body, Answer]) request(query url.Values, names ...string) *Request {
	return &Request{Pattern: r.Pattern, Names: names, Query: query, Limit: r.Limit}
}

// get sends a request without a body.
func (r Route[Body, Answer]) get(ctx context.Context, c *Client, query url.Values, names ...string) (Answer, error) {
	var answer Answer
	err := c.answer(ctx, r.request(query, names...), &answer)
	return answer, err
}

// send sends a request with a body.
func (r Route[Body, Answer]) send(ctx context.Context, c *Client, body Body, names ...string) (Answer, error) {
	var answer Answer
	request := r.request(nil, names...)
	request.Body = body
	err := c.answer(ctx, request, &answer)
	return answer, err
}

// ErrOnlyReads is the error of a call that would change something, see [Client.OnlyRead].
var ErrOnlyReads = errors.New("this client only reads")

func (c *Client) answer(ctx context.Context, r *Request, into any) error {
	isRead := strings.HasPrefix(r.Pattern, http.MethodGet) || r.Pattern == PreviewSettings.Pattern
	if c.onlyReads && !isRead {
		return fmt.Errorf("%s: %w", r.Pattern, ErrOnlyReads)
	}
	return c.transport.Answer(ctx, r, into)
}

// Filter selects messages to look at. The zero value is all of them.
type Filter struct {
	Selection
	State string // one of the Message constants
	After string // the cursor that the page before gave
	Limit int    // of one page, 1 to 1000; 0 means 100
}

// withBodies adds the parameter for bodies where [Client].Bodies asks for them.
func (c *Client) withBodies(query url.Values) url.Values {
	if c.Bodies {
		query.Set("body", "1")
	}
	return query
}

func limitQuery(limit int) url.Values { return url.Values{"limit": {strconv.Itoa(cmp.Or(limit, 100))}} }

// OnlyRead has the client refuse, from now on, every call that would change something.
func (c *Client) OnlyRead() { c.onlyReads = true }

// Close drops idle connections.
func (c *Client) Close() {
	if conn, ok := c.transport.(*connection); ok {
		conn.quick.CloseIdleConnections()
		conn.slow.CloseIdleConnections()
	}
}

// Status returns what the environment says about itself. The error wraps
// [ErrNotRunning] when another process answers at its address.
func (c *Client) Status(ctx context.Context) (Status, error) {
	st, err := GetStatus.get(ctx, c, nil)
	if err == nil && st.PID != c.Instance.PID {
		return Status{}, notRunning(c.dataDir)
	}
	return st, err
}

// Describe returns what the environment consists of.
func (c *Client) Describe(ctx context.Context) (Description, error) {
	return GetEnvironment.get(ctx, c, nil)
}

// Examine looks for what is wrong with the environment, its machine and what it works with.
func (c *Client) Examine(ctx context.Context) (doctor.Examination, error) {
	return GetExamination.get(ctx, c, nil)
}

// Health returns the health of the environment, with its causes.
func (c *Client) Health(ctx context.Context) (health.Report, error) {
	return GetHealth.get(ctx, c, nil)
}

// Series returns the curves of a range, "" for the shortest: one of [series.Ranges].
func (c *Client) Series(ctx context.Context, name string) (series.Curves, error) {
	return GetSeries.get(ctx, c, url.Values{"range": {name}})
}

// Queues returns every embedded queue, sorted by name, without attributes.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	list, err := GetQueues.get(ctx, c, nil)
	return list.Queues, err
}

// Queue returns one embedded queue with its attributes.
func (c *Client) Queue(ctx context.Context, name string) (Queue, error) {
	return GetQueue.get(ctx, c, nil, name)
}

// Messages returns one page of messages, oldest first, and the cursor of the next page: ""
// at the end. A page may be shorter than its limit before the end.
func (c *Client) Messages(ctx context.Context, name string, f Filter) (page []Message, next string, err error) {
	query := f.Selection.query()
	query.Set("state", f.State)
	query.Set("after", f.After)
	query.Set("limit", strconv.Itoa(cmp.Or(f.Limit, 100)))
	answer, err := GetMessages.get(ctx, c, c.withBodies(query), name)
	return answer.Messages, answer.Next, err
}

// Message returns one message by its id.
func (c *Client) Message(ctx context.Context, name, id string) (Message, error) {
	return GetMessage.get(ctx, c, c.withBodies(url.Values{}), name, id)
}

// Reasons groups the messages of a queue, dead letters in the first place, by why they failed last: the largest group
// first.
func (c *Client) Reasons(ctx context.Context, name string) ([]ReasonGroup, error) {
	list, err := GetReasons.get(ctx, c, nil, name)
	return list.Reasons, err
}

// Deliveries returns up to limit deliveries, the most recent first; 100 when limit is 0.
func (c *Client) Deliveries(ctx context.Context, limit int) ([]Delivery, error) {
	list, err := GetDeliveries.get(ctx, c, limitQuery(limit))
	return list.Deliveries, err
}

// Outcome returns the most recent delivery of a message, waiting up to wait for
// the first one to end. It returns the delivery in progress if none has ended by then; the
// bool is false without any delivery.
func (c *Client) Outcome(ctx context.Context, id string, wait time.Duration) (Delivery, bool, error) {
	until := time.Now().Add(wait)
	for {
		left := min(max(time.Until(until), 0), MaxWait)
		d, err := GetOutcome.get(ctx, c, url.Values{"wait": {left.String()}}, id)
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
	_, err := PauseQueue.send(ctx, c, Reason{why}, name)
	return err
}

// Resume undoes Pause.
func (c *Client) Resume(ctx context.Context, name string) error {
	_, err := ResumeQueue.send(ctx, c, NoBody{}, name)
	return err
}

// Quiet stops the environment from receiving at all; it goes on running.
func (c *Client) Quiet(ctx context.Context, why string) error {
	_, err := PauseAll.send(ctx, c, Reason{why})
	return err
}

// ResumeAll undoes Quiet.
func (c *Client) ResumeAll(ctx context.Context) error {
	_, err := ResumeAll.send(ctx, c, NoBody{})
	return err
}

// Purge removes all messages of a queue and returns how many there were. What a person typed to confirm it must be
// the name of the queue.
func (c *Client) Purge(ctx context.Context, name, confirm string, through int64) (int, error) {
	n, err := PurgeQueue.send(ctx, c, Confirmation{confirm, through}, name)
	return n["purged"], err
}

// CreateQueue creates an embedded queue with SQS attributes, and returns its ARN. A queue
// that exists with the same attributes is not an error.
func (c *Client) CreateQueue(ctx context.Context, name string, attributes map[string]string) (arn string, err error) {
	answer, err := CreateQueue.send(ctx, c, Creation{name, attributes})
	return answer.ARN, err
}

// DeleteQueue deletes an embedded queue and returns how many messages it held. What a person typed to confirm it must
// be the name of the queue. One that the environment works on, or that takes dead letters of another, is refused.
func (c *Client) DeleteQueue(ctx context.Context, name, confirm string) (int, error) {
	n, err := DeleteQueue.get(ctx, c, url.Values{"confirm": {confirm}}, name)
	return n["deleted"], err
}

// Send sends up to ten messages to an embedded queue and returns a result for each, in
// order, once they are on disk. The error is for the whole call.
func (c *Client) Send(ctx context.Context, name string, msgs []queue.Outgoing) ([]queue.Sent, error) {
	body := SendRequest{Messages: make([]Outgoing, len(msgs))}
	for i := range msgs {
		body.Messages[i] = fromQueue(&msgs[i])
	}
	answer, err := SendMessages.send(ctx, c, body, name)
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
		d, err := Drain.send(ctx, c, DrainRequest{min(left, MaxWait).String()})
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

// Deploy replaces the version of the app with the folder or archive at path; "" deploys the current one again. The
// error has status 422 if the deployment failed, and 409 if it could not start. The deployment goes on when ctx ends.
func (c *Client) Deploy(ctx context.Context, path string) (DeployResult, error) {
	return Deploy.send(ctx, c, DeployRequest{path})
}

// Reload puts in force what changed, as the signal HUP does. The
// error has a [Detail] for each thing that is wrong in the file of tasks, and the status of
// [Client.Deploy].
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	return Reload.send(ctx, c, NoBody{})
}

// Count counts the messages of an embedded queue that a selection means, for up to within; 0 means as long as a page
// can wait.
func (c *Client) Count(ctx context.Context, name string, sel Selection, within time.Duration) (Total, error) {
	query := sel.query()
	if within > 0 {
		query.Set("wait", within.String())
	}
	return CountMessages.get(ctx, c, c.withBodies(query), name)
}

// Retry makes one message visible at once, whatever it waits for.
func (c *Client) Retry(ctx context.Context, name, id string) (Placed, error) {
	return RetryMessage.send(ctx, c, NoBody{}, name, id)
}

// Delay hides one message for a time from now, in whole seconds and up to 12 hours.
func (c *Client) Delay(ctx context.Context, name, id string, delay time.Duration) (Placed, error) {
	return DelayMessage.send(ctx, c, DelayRequest{int((delay + time.Second - 1) / time.Second)}, name, id)
}

// Edit sends a message to the queue to, or to the one that the message id was dead-lettered from when to is "", and
// removes the message id, in one step. It returns the new message's id.
func (c *Client) Edit(ctx context.Context, name, id, to string, msg Outgoing) (string, error) {
	answer, err := EditMessage.send(ctx, c, EditRequest{msg, to},
		name, id)
	if err != nil {
		return "", err
	}
	if len(answer.Results) != 1 {
		return "", fmt.Errorf("the console at %s answered one message with %d results", c.Instance.Console,
			len(answer.Results))
	}
	return answer.Results[0].ID, nil
}

// Move moves up to 1000 messages by id to another queue and returns how many
// there were. An empty to means the queue that each was dead-lettered from.
func (c *Client) Move(ctx context.Context, from, to string, ids []string) (int, error) {
	n, err := MoveMessages.send(ctx, c, MoveRequest{IDs: ids, To: to}, from)
	return n["moved"], err
}

// Delete removes up to 1000 messages by id and returns how many there were. For more than one, confirm is their number
// as a person typed it.
func (c *Client) Delete(ctx context.Context, name string, ids []string, confirm int64) (int, error) {
	answer, err := DeleteMessages.send(ctx, c, Deletion{IDs: ids, Confirm: confirm}, name)
	return answer.Deleted, err
}

// DeleteMatching starts to delete the dead letters that a selection means, at most rate a second (1 to 500; 0 for no
// limit). For more than one, confirm is their number as a person typed it. The task goes on without the client.
func (c *Client) DeleteMatching(ctx context.Context, name string, sel Selection, rate int,
	confirm int64) (MoveTask, error) {
	answer, err := DeleteMessages.send(ctx, c, Deletion{Filter: &sel, Rate: rate, Confirm: confirm}, name)
	if err != nil || answer.Task == nil {
		return MoveTask{}, err
	}
	return *answer.Task, nil
}

// Tasks returns the periodic tasks as they stand, and who leads.
func (c *Client) Tasks(ctx context.Context) (TasksStatus, error) {
	return GetTasks.get(ctx, c, nil)
}

// TaskHistory returns up to limit runs, the newest first, of one task or for "" of all; 100
// when limit is 0.
func (c *Client) TaskHistory(ctx context.Context, name string, limit int) ([]TaskRun, error) {
	if name == "" {
		list, err := GetHistory.get(ctx, c, limitQuery(limit))
		return list.Runs, err
	}
	list, err := GetTaskHistory.get(ctx, c, limitQuery(limit), name)
	return list.Runs, err
}

// RunTask enqueues one run of a task at once, also of a paused one. After an error of status
// 503 the run may have been enqueued all the same.
func (c *Client) RunTask(ctx context.Context, name string) (TaskRun, error) {
	return RunTask.send(ctx, c, NoBody{}, name)
}

// PauseTask leaves out the runs of a task until ResumeTask. The reason is as for Pause.
func (c *Client) PauseTask(ctx context.Context, name, why string) error {
	_, err := PauseTask.send(ctx, c, Reason{why}, name)
	return err
}

// ResumeTask undoes PauseTask.
func (c *Client) ResumeTask(ctx context.Context, name string) error {
	_, err := ResumeTask.send(ctx, c, NoBody{}, name)
	return err
}

// Receive takes messages from an embedded queue, as a consumer does: it counts as a receive of each, and hides them.
func (c *Client) Receive(ctx context.Context, name string, req ReceiveRequest) ([]ReceivedMessage, error) {
	list, err := ReceiveMessages.send(ctx, c, req, name)
	return list.Messages, err
}

// Acknowledge deletes up to ten received messages by their handles, and returns how many were deleted.
func (c *Client) Acknowledge(ctx context.Context, name string, handles []string) (int, error) {
	n, err := AcknowledgeMessages.send(ctx, c, Receipts{handles}, name)
	return n["deleted"], err
}

// Redrive starts to move the messages of a dead-letter queue that a selection means to the queue to, or back to where
// each came from when to is "", at most rate a second (1 to 500; 0 for no limit). If most is not 0, it is refused where
// more messages than that match. The task goes on without the client.
func (c *Client) Redrive(ctx context.Context, name, to string, rate int, sel Selection, most int64) (MoveTask,
	error) {
	return StartRedrive.send(ctx, c, RedriveRequest{to, rate, sel, most}, name)
}

// RedriveTask returns the latest task of a dead-letter queue.
func (c *Client) RedriveTask(ctx context.Context, name string) (MoveTask, error) {
	return GetRedrive.get(ctx, c, nil, name)
}

// CancelRedrive ends the running task of a dead-letter queue. Messages that it moved or deleted stay so.
func (c *Client) CancelRedrive(ctx context.Context, name string) (MoveTask, error) {
	return CancelRedrive.get(ctx, c, nil, name)
}

// RecordExchanges has the environment remember what it posts, and the answers, for a time of up to five minutes.
func (c *Client) RecordExchanges(ctx context.Context, span time.Duration) error {
	_, err := RecordExchanges.send(ctx, c, RecordRequest{min(span, MaxRecording).String()})
	return err
}

// Exchange returns what was posted last for a message, and the answer. The error has status 404 where none is
// remembered.
func (c *Client) Exchange(ctx context.Context, id string) (Exchange, error) {
	return GetExchange.get(ctx, c, url.Values{"body": {"1"}}, id)
}

// Configuration returns every option in force and the file that changes are written to.
func (c *Client) Configuration(ctx context.Context) (Configuration, error) {
	return GetConfiguration.get(ctx, c, nil)
}

// PreviewChange says what a change of the settings file would do. The error has a [Detail] for each option that is
// wrong.
func (c *Client) PreviewChange(ctx context.Context, change SettingsChange) (SettingsPreview, error) {
	return PreviewSettings.send(ctx, c, change)
}

// ChangeSettings writes a change into the settings file and puts in force what can be. The error has status 409 when
// the file is not the one of the base any more.
func (c *Client) ChangeSettings(ctx context.Context, change SettingsChange) (SettingsPreview, error) {
	return ChangeSettings.send(ctx, c, change)
}

// Versions returns the versions of the app that were deployed, the newest first.
func (c *Client) Versions(ctx context.Context) ([]AppVersion, error) {
	list, err := GetVersions.get(ctx, c, nil)
	return list.Versions, err
}

// Rollback replaces the version of the app by one that served before, 0 for the last one. Errors are as for Deploy; one
// of status 404 means that there is no such version.
func (c *Client) Rollback(ctx context.Context, number int) (DeployResult, error) {
	return Rollback.send(ctx, c, RollbackRequest{number})
}

// AbortDeploy ends the deployment that is in progress and returns it when it is over: the previous version is still
// serving. The error has status 409 when there is none, or when the new version is serving already.
func (c *Client) AbortDeploy(ctx context.Context) (Deployment, error) {
	return AbortDeploy.send(ctx, c, NoBody{})
}

// RestartProcess restarts one process of the app, a replica without a gap, a helper once it has ended, and returns
// the name of the one in its place. Errors are as for Deploy; one of status 404 means that there is no such process.
func (c *Client) RestartProcess(ctx context.Context, name string) (now string, err error) {
	done, err := RestartProcess.send(ctx, c, NoBody{}, name)
	return done.Process, err
}

// ScaleDecisions returns the last decisions about the size.
func (c *Client) ScaleDecisions(ctx context.Context) (ScaleDecisions, error) {
	return GetScaleDecisions.get(ctx, c, nil)
}

// Scale returns what waits, and the size wanted.
func (c *Client) Scale(ctx context.Context) (autoscale.Scale, error) {
	return GetScale.get(ctx, c, nil)
}

// Instances returns the instances of the environment, as far as it knows.
func (c *Client) Instances(ctx context.Context) (Instances, error) {
	return GetInstances.get(ctx, c, nil)
}

// Events returns the events that f selects.
func (c *Client) Events(ctx context.Context, f EventFilter) ([]eventlog.Event, error) {
	list, err := GetEvents.get(ctx, c, f.query())
	return list.Events, err
}

// FollowEvents calls each for the events that f selects, as they come: those that follow f.After, or for 0 those that
// happen from now on. It returns the error of each, nil when the environment ends the stream, or why there is no
// stream.
func (c *Client) FollowEvents(ctx context.Context, f EventFilter, each func(eventlog.Event) error) error {
	return follow(ctx, c, GetEvents.request(f.query()), each)
}

// Logs returns the lines of the log that f selects.
func (c *Client) Logs(ctx context.Context, f LineFilter) ([]eventlog.Line, error) {
	list, err := GetLogs.get(ctx, c, f.query())
	return list.Lines, err
}

// FollowLogs is FollowEvents for lines of the log.
func (c *Client) FollowLogs(ctx context.Context, f LineFilter, each func(eventlog.Line) error) error {
	return follow(ctx, c, GetLogs.request(f.query()), each)
}

// NewLogin returns a link that lets one browser in, as 'tendril open' prints it. It needs the owner's token.
func (c *Client) NewLogin(ctx context.Context, scopes ...string) (string, error) {
	link, err := NewLogin.send(ctx, c, LoginRequest{scopes})
	return c.Instance.ConsoleURL() + link.Path, err
}

// Caller returns who the client is for the console.
func (c *Client) Caller(ctx context.Context) (Caller, error) {
	return GetCaller.get(ctx, c, nil)
}
