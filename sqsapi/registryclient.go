package sqsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"tendril/broker"
	"tendril/queue"
)

// RegistryClient is the registry of a broker that another process serves, with
// the methods of [broker.Registry]. Refusals come back as the [*queue.Error]
// that the registry itself gave; an endpoint that does not answer, or not as
// this server would, is a queue.CodeUnreachable or a
// queue.CodeUnsupportedOperation. After any other error than a refusal it is
// unknown what became of a write, and to repeat it is harmless.
//
// Nothing is tried twice, and only the context limits how long a call takes.
// All methods are safe for concurrent use.
type RegistryClient struct {
	endpoint string
	http     http.Client
}

// maxRegistryAnswer bounds what is read of an answer.
const maxRegistryAnswer = 16 << 20

// NewRegistryClient returns a client of the endpoint that a [Handler] serves
// at a URL such as http://127.0.0.1:9324. hc may bring a transport; nil means
// http.DefaultClient's. It does not follow redirects. Nothing is sent yet.
func NewRegistryClient(endpoint string, hc *http.Client) *RegistryClient {
	c := &RegistryClient{endpoint: endpoint}
	if hc != nil {
		c.http = *hc
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Probe tells whether the endpoint serves a registry. false without an error
// means that something else answers there, such as another SQS server. An
// error means that nobody can tell: there was no answer, or the server could
// not work, or would not for this caller.
func (c *RegistryClient) Probe(ctx context.Context) (bool, error) {
	_, err := c.Last(ctx, nil)
	if err == nil {
		return true, nil
	}
	if u, bad := url.Parse(c.endpoint); bad != nil || u.Host == "" {
		return false, err // nobody was asked
	}
	if errors.Is(err, errNoRegistry) || ctx.Err() == nil && !mayPass(err) {
		return false, nil
	}
	return false, err
}

// mayPass reports whether a registry can answer this call with an error. Other SQS
// servers refuse an action that they do not know with all kinds of codes.
func mayPass(err error) bool {
	var e *queue.Error
	if !errors.As(err, &e) {
		return true
	}
	switch e.Code {
	case queue.CodeUnreachable, queue.CodeAccessDenied, queue.CodeInvalidSecurity, queue.CodeRequestThrottled,
		queue.CodeOverLimit,
		queue.CodeStorageFailed, queue.CodeStorageFull, queue.CodeClosed:
		return true
	}
	return false
}

// Read is [broker.Registry.Read].
func (c *RegistryClient) Read(ctx context.Context, name string) (queue.Lease, error) {
	var out readLeaseResponse
	if err := c.call(ctx, "ReadLease", readLeaseRequest{name}, &out, func() bool {
		return out.Lease != nil
	}, name); err != nil {
		return queue.Lease{}, err
	}
	return out.Lease.lease(), nil
}

// Swap is [broker.Registry.Swap].
func (c *RegistryClient) Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease,
	err error) {
	in := swapLeaseRequest{name, old.Version, toWire(next)}
	var out swapLeaseResponse
	complete := func() bool { return out.Won != nil && out.Current != nil }
	if err := c.call(ctx, "SwapLease", in, &out, complete, name, old.Version, next.Version, next.Owner,
		next.Data); err != nil {
		return false, queue.Lease{}, err
	}
	return *out.Won, out.Current.lease(), nil
}

// Enqueue is [broker.Registry.Enqueue]. The message's Delay is in whole seconds.
func (c *RegistryClient) Enqueue(ctx context.Context, req broker.RunRequest, m queue.Outgoing) (sent queue.Sent,
	already bool, err error) {
	message, texts, err := messageWire(&m)
	if err != nil {
		return queue.Sent{}, false, err
	}
	in := enqueueRequest{Queue: req.Queue, ID: req.ID, Task: req.Task, Lease: req.Lease, Term: req.Term, Message: message}
	if !req.At.IsZero() {
		milli := req.At.UnixMilli()
		in.AtMilliseconds = &milli
	}
	var out enqueueResponse
	complete := func() bool { return out.Already != nil && out.MessageID != "" }
	if err := c.call(ctx, "Fire", in, &out, complete,
		append(texts, req.Queue, req.ID, req.Task, req.Lease)...); err != nil {
		return queue.Sent{}, false, err
	}
	return queue.Sent{ID: out.MessageID, SequenceNumber: out.SequenceNumber}, *out.Already, nil
}

// Last is [broker.Registry.Last].
func (c *RegistryClient) Last(ctx context.Context, tasks []string) (map[string]time.Time, error) {
	var out lastRunsResponse
	if err := c.call(ctx, "LastFires", lastRunsRequest{tasks}, &out, func() bool {
		return out.Last != nil
	}, tasks...); err != nil {
		return nil, err
	}
	return fromMilli(out.Last), nil
}

// SinceUnder is [broker.Registry.SinceUnder].
func (c *RegistryClient) SinceUnder(ctx context.Context, lease string, term int64, from map[string]time.Time,
	schedules map[string]string) (map[string]time.Time, error) {
	texts := []string{lease}
	for task := range from {
		texts = append(texts, task, schedules[task])
	}
	var out sinceRunsResponse
	in := sinceRunsRequest{Lease: lease, Term: term, From: toMilli(from), Schedules: schedules}
	if err := c.call(ctx, "SinceRuns", in, &out, func() bool { return out.Since != nil }, texts...); err != nil {
		return nil, err
	}
	return fromMilli(out.Since), nil
}

// Skip is [broker.Registry.Skip]. A server of an older version looks for no runs.
func (c *RegistryClient) Skip(ctx context.Context, req broker.RunRequest, ids []string) (made map[string]string,
	err error) {
	at := req.At.UnixMilli()
	var out skipRunResponse
	in := skipRunRequest{ID: req.ID, Task: req.Task, AtMilliseconds: &at, Lease: req.Lease, Term: req.Term, IDs: ids}
	texts := append([]string{req.ID, req.Task, req.Lease}, ids...)
	if err := c.call(ctx, "SkipFire", in, &out, func() bool { return out.Skipped != nil }, texts...); err != nil {
		return nil, err
	}
	return out.Made, nil
}

// EnqueuedTo is [broker.Registry.EnqueuedTo].
func (c *RegistryClient) EnqueuedTo(ctx context.Context, id, path string) (bool, error) {
	var out enqueuedResponse
	if err := c.call(ctx, "Fired", enqueuedRequest{id, &path}, &out, func() bool {
		return out.Enqueued != nil
	}, id, path); err != nil {
		return false, err
	}
	return *out.Enqueued, nil
}

// SetPaused is [broker.Registry.SetPaused].
func (c *RegistryClient) SetPaused(ctx context.Context, task, reason string, paused bool) error {
	var out setPausedResponse
	complete := func() bool { return out.Paused != nil && *out.Paused == paused }
	return c.call(ctx, "SetPaused", setPausedRequest{task, reason, &paused}, &out, complete, task, reason)
}

// Paused is [broker.Registry.Paused].
func (c *RegistryClient) Paused(ctx context.Context) (map[string]string, error) {
	var out pausedResponse
	if err := c.call(ctx, "Paused", pausedRequest{}, &out, func() bool { return out.Paused != nil }); err != nil {
		return nil, err
	}
	return out.Paused, nil
}

// messageWire turns a message into the parameters of a send, and names the
// texts in it.
func messageWire(m *queue.Outgoing) (*outgoing, []string, error) {
	texts := []string{m.Body, m.GroupID, m.DedupID, m.TraceHeader}
	o := &outgoing{MessageBody: m.Body, MessageGroupID: m.GroupID, MessageDeduplicationID: m.DedupID}
	if m.Delay != nil {
		n := int(*m.Delay / time.Second)
		if time.Duration(n)*time.Second != *m.Delay {
			return nil, nil, invalid(*m.Delay, "Delay", "A delay is a whole number of seconds.")
		}
		o.DelaySeconds = &n
	}
	if m.TraceHeader != "" {
		o.MessageSystemAttributes = map[string]attributeValue{traceAttribute: {DataType: "String",
			StringValue: &m.TraceHeader}}
	}
	for _, a := range m.Attributes {
		if _, twice := o.MessageAttributes[a.Name]; twice {
			return nil, nil, queue.Errorf(queue.CodeInvalidParameterValue,
				"Message (user) attribute name '%s' already exists.", a.Name)
		}
		if o.MessageAttributes == nil {
			o.MessageAttributes = map[string]attributeValue{}
		}
		value := attributeValue{DataType: a.Type}
		if texts = append(texts, a.Name, a.Type); a.IsBinary() {
			value.BinaryValue = []byte(a.Value)
		} else {
			value.StringValue, texts = &a.Value, append(texts, a.Value)
		}
		o.MessageAttributes[a.Name] = value
	}
	return o, texts, nil
}

// call makes one call. complete says whether the answer has all that this
// server puts into it. texts are those of the request: JSON would change the
// ones that are not UTF-8.
func (c *RegistryClient) call(ctx context.Context, action string, in, out any, complete func() bool,
	texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return queue.Errorf(queue.CodeInvalidMessageContents, "A text in the call of %s is not valid UTF-8.", action)
		}
	}
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encoding the call of %s: %w", action, err)
	}
	status, answer, err := c.post(ctx, action, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return c.refusal(status, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil || !complete() {
		return c.noRegistry(status)
	}
	return nil
}

// post makes one HTTP exchange.
func (c *RegistryClient) post(ctx context.Context, action string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil || req.URL.Host == "" {
		return 0, nil, queue.Errorf(queue.CodeInvalidAddress,
			"The address %s of a registry is not of the form http://HOST:PORT.", quote(c.endpoint))
	}
	req.Header.Set("Content-Type", jsonType)
	req.Header.Set("X-Amz-Target", registryPrefix+action)
	resp, err := c.http.Do(req)
	if err == nil {
		defer resp.Body.Close()
		answer, err = io.ReadAll(io.LimitReader(resp.Body, maxRegistryAnswer))
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		var outer *url.Error // repeats the address
		if errors.As(err, &outer) {
			err = outer.Err
		}
		return 0, nil, queue.Errorf(queue.CodeUnreachable,
			"The registry at %s did not answer: %w; check that tendril serve runs there.", c.shown(), err)
	}
	return resp.StatusCode, answer, nil
}

// refusal reads an error's answer.
func (c *RegistryClient) refusal(status int, answer []byte) error {
	var wire struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	ours := json.Unmarshal(answer, &wire) == nil
	_, code, named := strings.Cut(wire.Type, "#")
	f, known := faults[code]
	ours = ours && named && known && f.status == status && code != codeUnknownOperation
	switch {
	case ours:
		return &queue.Error{Code: code, Message: wire.Message}
	case status >= 500 && status != http.StatusNotImplemented:
		return queue.Errorf(queue.CodeUnreachable, "The registry at %s could not answer: status %d.", c.shown(), status)
	default:
		return c.noRegistry(status)
	}
}

// errNoRegistry is the cause when something else answers.
var errNoRegistry = errors.New("not a registry's answer")

func (c *RegistryClient) noRegistry(status int) error {
	return &queue.Error{Code: queue.CodeUnsupportedOperation, Err: errNoRegistry, Message: fmt.Sprintf(
		"The server at %s answered with status %d and is no tendril that keeps a registry; give the address of tendril "+
			"serve, of this version or later.",
		c.shown(), status)}
}

// shown is the endpoint for people, without a password.
func (c *RegistryClient) shown() string {
	u, err := url.Parse(c.endpoint)
	if err != nil {
		return quote(c.endpoint)
	}
	return u.Redacted()
}
