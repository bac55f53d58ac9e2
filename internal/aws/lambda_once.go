package aws

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"tendril/queue"
)

type invokeError struct {
	Sent bool
	Err  error
}

func (e *invokeError) Error() string { return e.Err.Error() }

func (e *invokeError) Unwrap() error { return e.Err }

func (e *invokeError) Unsent() bool { return !e.Sent }

type sending struct {
	// payload replaces the SDK's body; see [wholeBodies].
	payload []byte
	paused  func() bool
	// started means that a byte may have been sent.
	started atomic.Bool
	// reused means that the latest attempt used a kept connection.
	reused bool
}

type sendingKey struct{}

// onceTransport repeats a request that http.Transport does not: if the server closed a kept connection just before the
// request, http.Transport returns an error, although nothing was sent. Repeating ends, because each repetition uses up
// a kept connection.
type onceTransport struct{ next http.RoundTripper }

// maxReply exceeds Lambda's limit of 6 MiB.
const maxReply = 7 << 20

func (t *onceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	s, ok := req.Context().Value(sendingKey{}).(*sending)
	if ok {
		req = s.track(req)
	}
	resp, err := t.next.RoundTrip(req)
	for err != nil && ok && s.isRepeatable(req) {
		s.reused = false
		req.Body, _ = req.GetBody()
		resp, err = t.next.RoundTrip(req)
	}
	if err != nil {
		return nil, err
	}

	// If only the end of the connection marks the end of the body, an empty body may be truncated.
	endless := resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxReply, needed: endless}
	return resp, nil
}

// isRepeatable reports whether a kept connection failed before the request's first byte. http.Transport writes nothing
// after it has returned an error.
func (s *sending) isRepeatable(req *http.Request) bool {
	return s.reused && !s.started.Load() && req.GetBody != nil && req.Context().Err() == nil
}

func (s *sending) track(req *http.Request) *http.Request {
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn:          func(string) { s.started.Store(false); s.reused = false },
		GotConn:          func(info httptrace.GotConnInfo) { s.reused = info.Reused },
		WroteHeaderField: func(string, []string) { s.started.Store(true) },
	}))
	if req.Body != nil && req.ContentLength == int64(len(s.payload)) {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.payload)), nil }
		req.Body, _ = req.GetBody()
	}
	return req
}

type boundedBody struct {
	io.ReadCloser
	left   int64
	needed bool // an empty body is an error
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, errors.New("the response is larger than the service allows")
	}
	if b.needed && n == 0 && errors.Is(err, io.EOF) {
		return 0, io.ErrUnexpectedEOF
	}
	b.needed = b.needed && n == 0
	return n, err
}

func refusedInvocation(err error) (queue.Invocation, bool) {
	refused := refusalIn(err)
	if refused == nil || refused.status < 300 {
		return queue.Invocation{}, false
	}

	a := queue.Invocation{Status: refused.status, Code: refused.shape, Message: refused.message}
	if a.Code == "UnknownError" { // the SDK's code for a response without one
		a.Code, a.Message = "", ""
	}

	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		header := response.Response.Header
		a.RequestID = header.Get("X-Amzn-Requestid")
		a.RetryAfter = retryAfter(header.Get("Retry-After"), time.Now())
	}

	var throttled *types.TooManyRequestsException
	if errors.As(err, &throttled) {
		a.Reason = string(throttled.Reason)
	}

	return a, true
}

func retryAfter(value string, now time.Time) time.Duration {
	var after time.Duration
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		after = at.Sub(now)
	}
	return min(max(after, 0), queue.MaxVisibility)
}
