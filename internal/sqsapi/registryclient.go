package sqsapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tendril/internal/host/proof"
	"tendril/internal/registry"
	"tendril/queue"
)

// RegistryClient accesses the registry of a broker in another process. Errors are the registry's [*queue.Error], or
// have the code [queue.CodeUnreachable] if the endpoint fails or does not respond, [queue.CodeAccessDenied] if it does
// not prove that it knows the token, or [queue.CodeUnsupportedOperation] if it is not a registry. A failed write may
// have taken effect; it can be repeated.
//
// A call is repeated only if a kept connection was closed or the endpoint turns out to require signatures. All methods
// are safe for concurrent use.
type RegistryClient struct {
	endpoint string
	scope    registry.Scope
	token    string
	sign     func(*http.Request, []byte) error
	signing  atomic.Bool // the endpoint requires signatures
	http     http.Client
}

// Identity is a [RegistryClient]'s credentials; the zero value has none.
type Identity struct {
	Token string
	// Insecure sends the token even without TLS or the server's proof that it knows the token.
	Insecure bool
	// Sign signs a request with its body; may be nil. It is called only if the endpoint requires signatures, because
	// other SQS servers reject unknown keys.
	Sign func(r *http.Request, body []byte) error
}

const maxRegistryAnswer = 16 << 20

// NewRegistryClient returns a client for the runs of one environment at a [Handler]'s endpoint, such as
// http://127.0.0.1:9324. hc may provide a transport, or be nil. Redirects are not followed. Without TLS, the token is
// sent only to a server that proves that it knows it, unless as.Insecure is set.
func NewRegistryClient(endpoint string, scope registry.Scope, as Identity, hc *http.Client) *RegistryClient {
	c := &RegistryClient{endpoint: endpoint, scope: scope, token: as.Token, sign: as.Sign}
	if hc != nil {
		c.http = *hc
	}

	if as.Token != "" && !as.Insecure && strings.HasPrefix(endpoint, "http:") {
		transport, ok := c.http.Transport.(*http.Transport)
		if !ok {
			transport = http.DefaultTransport.(*http.Transport)
		}
		c.http.Transport = proof.Require(transport, as.Token)
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Probe reports whether the endpoint serves a registry, or returns an error if that cannot be determined.
func (c *RegistryClient) Probe(ctx context.Context) (bool, error) {
	_, err := ask[lastRunsResponse](ctx, c, "LastFires", lastRunsRequest{})
	if err == nil {
		return true, nil
	}
	if u, invalid := url.Parse(c.endpoint); invalid != nil || u.Host == "" {
		return false, err // nothing was sent
	}
	if errors.Is(err, errNoRegistry) {
		return false, nil
	}

	if ctx.Err() != nil || isTemporary(err) {
		return false, err
	}
	return false, nil
}

// isTemporary reports whether a later call may succeed. Other SQS servers reject unknown actions with various codes.
func isTemporary(err error) bool {
	e := asQueueError(err)
	if e == nil {
		return true
	}
	switch e.Code {
	case queue.CodeUnreachable, queue.CodeAccessDenied, queue.CodeInvalidSecurity, queue.CodeSignatureDoesNotMatch,
		queue.CodeRequestThrottled, queue.CodeOverLimit, queue.CodeStorageFailed, queue.CodeStorageFull, queue.CodeClosed:
		return true
	}
	return false
}

// Read implements [registry.Leases.Read].
func (c *RegistryClient) Read(ctx context.Context, name string) (queue.Lease, error) {
	out, err := ask[readLeaseResponse](ctx, c, "ReadLease", readLeaseRequest{name})
	return out.Lease.lease(), err
}

// Swap implements [registry.Leases.Swap].
func (c *RegistryClient) Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease,
	err error) {
	out, err := ask[swapLeaseResponse](ctx, c, "SwapLease", swapLeaseRequest{name, old.Version, new(toWire(next))})
	return out.Won, out.Current.lease(), err
}

// Enqueue implements [registry.Runs.Enqueue]. The message's Delay must be whole seconds.
func (c *RegistryClient) Enqueue(ctx context.Context, term int64, run registry.Run) (registry.EnqueueResult, error) {
	message, err := messageWire(&run.Message)
	if err != nil {
		return registry.EnqueueResult{}, err
	}
	out, err := ask[enqueueResponse](ctx, c, "Fire", enqueueRequest{run.Queue, c.runWire(term, &run), message})
	sent := queue.Sent{ID: out.MessageID, SequenceNumber: out.SequenceNumber}
	return registry.EnqueueResult{Sent: sent, Already: out.Already}, registry.AdviseQueue(err, run.Queue)
}

func (c *RegistryClient) runWire(term int64, run *registry.Run) runWire {
	w := runWire{ID: c.scope.Key(run.ID)}
	if !run.ScheduledAt.IsZero() {
		w.AtMilliseconds = new(run.ScheduledAt.UnixMilli())
	}
	if !run.Manual {
		fence := c.scope.Fence(term)
		w.Task = c.scope.Key(run.Task)
		w.Lease = fence.Lease
		w.Term = fence.Term
	}
	return w
}

// Since implements [registry.Runs.Since]. Earlier versions of the server do not return the start times of tasks.
func (c *RegistryClient) Since(ctx context.Context, term int64, starts map[string]registry.Start) (
	map[string]queue.TaskTimes, error) {
	fence := c.scope.Fence(term)
	in := sinceRunsRequest{fence.Lease, fence.Term, map[string]int64{}, map[string]string{}}
	for task, start := range starts {
		in.From[c.scope.Key(task)] = start.At.UnixMilli()
		in.Schedules[c.scope.Key(task)] = start.Schedule
	}
	out, err := ask[sinceRunsResponse](ctx, c, "SinceRuns", in)
	if err != nil {
		return nil, err
	}

	known := map[string]queue.TaskTimes{}
	for task := range starts {
		upTo, entered := out.Since[c.scope.Key(task)]
		if !entered {
			continue
		}
		times := queue.TaskTimes{UpTo: time.UnixMilli(upTo).UTC()}
		if from, ok := out.From[c.scope.Key(task)]; ok {
			times.From = time.UnixMilli(from).UTC()
		}
		known[task] = times
	}
	return known, nil
}

// Skip implements [registry.Runs.Skip]. Earlier versions of the server do not look up runs.
func (c *RegistryClient) Skip(ctx context.Context, term int64, runs []registry.Run) (map[string]registry.RunRecord, error) {
	in := skipRunRequest{runWire: c.runWire(term, &runs[len(runs)-1])}
	for i := range runs {
		in.IDs = append(in.IDs, c.scope.Key(runs[i].ID))
	}
	out, err := ask[skipRunResponse](ctx, c, "SkipFire", in)
	if err != nil {
		return nil, err
	}

	found := map[string]registry.RunRecord{}
	for i := range runs {
		if message, ok := out.Made[in.IDs[i]]; ok {
			found[runs[i].ID] = registry.RunRecord{Tries: 1, Settled: true, MessageID: message}
		}
	}
	return found, nil
}

// Known implements [registry.Runs.Known].
func (c *RegistryClient) Known(ctx context.Context, id, path string) (bool, error) {
	out, err := ask[enqueuedResponse](ctx, c, "Fired", enqueuedRequest{c.scope.Key(id), &path})
	return out.Enqueued, err
}

// SetPaused implements [registry.Runs.SetPaused].
func (c *RegistryClient) SetPaused(ctx context.Context, task, reason string, paused bool) error {
	out, err := ask[setPausedResponse](ctx, c, "SetPaused", setPausedRequest{c.scope.Key(task), reason, &paused})
	if err == nil && out.Paused != paused {
		return c.noRegistry(http.StatusOK)
	}
	return err
}

// Paused implements [registry.Runs.Paused].
func (c *RegistryClient) Paused(ctx context.Context) (map[string]string, error) {
	out, err := ask[pausedResponse](ctx, c, "Paused", struct{}{})
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for name, reason := range out.Paused {
		if task, ok := strings.CutPrefix(name, c.scope.Key("")); ok {
			reasons[task] = reason
		}
	}
	return reasons, nil
}

// WriteArchive implements [Archives].
func (c *RegistryClient) WriteArchive(ctx context.Context, name, upload string, offset, size int64, data []byte) error {
	_, err := ask[archiveResponse](ctx, c, "WriteArchive", writeArchiveRequest{name, upload, offset, size, data})
	return err
}

// ReadArchive implements [Archives].
func (c *RegistryClient) ReadArchive(ctx context.Context, name string, offset int64) (data []byte, size int64, err error) {
	out, err := ask[readArchiveResponse](ctx, c, "ReadArchive", readArchiveRequest{name, offset})
	return out.Data, out.Size, err
}

// DeleteArchive implements [Archives].
func (c *RegistryClient) DeleteArchive(ctx context.Context, name string) error {
	_, err := ask[archiveResponse](ctx, c, "DeleteArchive", deleteArchiveRequest{name})
	return err
}

func messageWire(m *queue.Outgoing) (*outgoing, error) {
	o := &outgoing{MessageBody: m.Body}
	if m.GroupID != "" {
		o.MessageGroupID = &m.GroupID
	}
	if m.DedupID != "" {
		o.MessageDeduplicationID = &m.DedupID
	}
	if m.Delay != nil {
		n := int(*m.Delay / time.Second)
		if time.Duration(n)*time.Second != *m.Delay {
			return nil, invalid(*m.Delay, "Delay", "A delay is a whole number of seconds.")
		}
		o.DelaySeconds = &n
	}
	if m.TraceHeader != "" {
		o.MessageSystemAttributes = attributeList{{name: traceAttribute, DataType: "String", StringValue: &m.TraceHeader}}
	}

	for i, a := range m.Attributes {
		if slices.ContainsFunc(m.Attributes[:i], func(b queue.Attribute) bool { return b.Name == a.Name }) {
			return nil, queue.Errorf(queue.CodeInvalidParameterValue,
				"Message (user) attribute name '%s' already exists.", a.Name)
		}
		value := messageAttribute{name: a.Name, DataType: a.Type, StringValue: &a.Value}
		if a.IsBinary() {
			value.StringValue = nil
			value.BinaryValue = []byte(a.Value)
		}
		o.MessageAttributes = append(o.MessageAttributes, value)
	}
	return o, nil
}

// Of duplicate members, the last one wins.
var decodeOptions = jsontext.AllowDuplicateNames(true)

// callOptions match encoding/json, except that invalid UTF-8 is an error.
var callOptions = json.JoinOptions(json.Deterministic(true), json.FormatNilMapAsNull(true),
	json.FormatNilSliceAsNull(true))

func ask[Response any](ctx context.Context, c *RegistryClient, action string, in any) (out Response, err error) {
	body, err := json.Marshal(in, callOptions)
	if err != nil {
		return out, queue.Errorf(queue.CodeInvalidMessageContents, "The request of %s is not JSON: %w", action, err)
	}

	status, answer, err := c.post(ctx, action, body)
	if err == nil && status == http.StatusForbidden && c.sign != nil && c.signing.CompareAndSwap(false, true) {
		status, answer, err = c.post(ctx, action, body)
	}
	if err != nil {
		return out, err
	}
	if status != http.StatusOK {
		return out, c.refusal(status, answer)
	}

	if !decodeAnswer(answer, &out) {
		return *new(Response), c.noRegistry(status)
	}
	return out, nil
}

// decodeAnswer returns false if answer lacks a member that every registry sends.
func decodeAnswer[Response any](answer []byte, out *Response) bool {
	var members map[string]jsontext.Value
	if json.Unmarshal(answer, &members, decodeOptions) != nil {
		return false
	}

	for field := range reflect.TypeFor[Response]().Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		value := members[cmp.Or(name, field.Name)]
		if option == "" && (value == nil || value.Kind() == 'n') {
			return false
		}
	}
	return json.Unmarshal(answer, out, decodeOptions) == nil
}

func (c *RegistryClient) post(ctx context.Context, action string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil || req.URL.Host == "" {
		return 0, nil, queue.Errorf(queue.CodeInvalidAddress,
			"The address %s of a registry is not of the form http://HOST:PORT.", quote(c.endpoint))
	}

	req.Header.Set("Content-Type", jsonType)
	req.Header.Set("X-Amz-Target", registryPrefix+action)
	if c.token != "" {
		req.Header.Set(registryToken, c.token)
	}
	if c.signing.Load() {
		if err := c.sign(req, body); err != nil {
			return 0, nil, queue.Errorf(queue.CodeUnreachable, "The request to the registry cannot be signed: %w.", err)
		}
	}
	req.Header["Idempotency-Key"] = nil // not sent; lets net/http repeat the request if a kept connection was closed

	resp, err := c.http.Do(req)
	if err == nil {
		defer resp.Body.Close()
		answer, err = io.ReadAll(io.LimitReader(resp.Body, maxRegistryAnswer))
	}
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return 0, nil, c.noResponse(err)
	}
	return resp.StatusCode, answer, nil
}

func (c *RegistryClient) noResponse(err error) error {
	var outer *url.Error // its text would repeat the address
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if unproved, ok := errors.AsType[*proof.Error](err); ok {
		return c.tokenError(unproved)
	}
	return queue.Errorf(queue.CodeUnreachable,
		"The registry at %s did not respond: %w; check that tendril serve runs there.", c.shownEndpoint(), err)
}

func (c *RegistryClient) tokenError(err *proof.Error) error {
	if err.Other {
		return queue.Errorf(queue.CodeAccessDenied, "The registry at %s has a different token than this instance, so nothing "+
			"was sent to it. Set TENDRIL_REGISTRY_TOKEN to the content of the file registry-token in the data directory "+
			"of the tendril that serves the queue: %w.", c.shownEndpoint(), err)
	}
	return queue.Errorf(queue.CodeAccessDenied, "The registry at %s does not prove that it knows the token, so the "+
		"token was not sent: it may be an older version of tendril serve, which you should upgrade, a forwarded "+
		"port with another number, or another program. If you trust the server, start with --registry-insecure: "+
		"%w.", c.shownEndpoint(), err)
}

// Signs reports whether the endpoint has required signed requests.
func (c *RegistryClient) Signs() bool { return c.signing.Load() }

func (c *RegistryClient) refusal(status int, answer []byte) error {
	var wire struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &wire, decodeOptions) == nil {
		_, code, _ := strings.Cut(wire.Type, "#")
		if f, known := faults[code]; known && f.status == status && code != codeUnknownOperation {
			return &queue.Error{Code: code, Message: wire.Message}
		}
	}
	if status >= 500 && status != http.StatusNotImplemented {
		return queue.Errorf(queue.CodeUnreachable, "The registry at %s failed with status %d.", c.shownEndpoint(), status)
	}
	return c.noRegistry(status)
}

var errNoRegistry = errors.New("not a registry's response")

func (c *RegistryClient) noRegistry(status int) error {
	return &queue.Error{Code: queue.CodeUnsupportedOperation, Err: errNoRegistry, Message: fmt.Sprintf(
		"The server at %s responded with status %d and has no registry; use the address of 'tendril serve', of this "+
			"version or later.", c.shownEndpoint(), status)}
}

func (c *RegistryClient) shownEndpoint() string {
	u, err := url.Parse(c.endpoint)
	if err != nil {
		return quote(c.endpoint)
	}
	return u.Redacted()
}
