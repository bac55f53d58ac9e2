package aws

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
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

// invokeError is a call of a function without a whole answer.
type invokeError struct {
	// Sent tells that a part of the call left, so that the function may have run.
	Sent bool
	// Err is why: a [*queue.Error], or the end of the caller's own context.
	Err error
}

// Error returns the sentence of the cause.
func (e *invokeError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *invokeError) Unwrap() error { return e.Err }

// Unsent reports whether no byte of the call left: the function has not run.
func (e *invokeError) Unsent() bool { return !e.Sent }

// sending is how far one call came.
type sending struct {
	// payload is the request's body. The SDK closes its own as soon as an answer
	// begins, and net/http, which may just be looking for its end, then closes the
	// connection over the answer.
	payload []byte
	// left: a byte of the request was handed to the kernel, or may have been.
	left bool
	// stale: none was, because a kept connection turned out to be dead.
	stale bool
}

type sendingKey struct{}

// onceTransport sends a request and tells the sending of its context how far that
// came. It bounds the answer.
type onceTransport struct{ next http.RoundTripper }

// maxReply bounds what is read of one answer: Lambda's own limit is 6 MiB.
const maxReply = 7 << 20

// RoundTrip makes one exchange.
func (t *onceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var conn *tappedConn
	var before int64
	var known, reused bool

	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			known, reused = true, got.Reused
			if conn = tapOf(got.Conn); conn != nil {
				before = conn.writes.Load()
			}
		},
	}))

	s, _ := req.Context().Value(sendingKey{}).(*sending)
	if s != nil && req.Body != nil && req.ContentLength == int64(len(s.payload)) {
		req.Body = io.NopCloser(bytes.NewReader(s.payload))
	}

	resp, err := t.next.RoundTrip(req)
	left := err == nil || known && (conn == nil || conn.seal() != before)
	if s != nil {
		s.left, s.stale = left, !left && reused
	}
	if err != nil {
		return nil, err
	}

	// Where only the connection's end ends the body, an empty one may be a lost one.
	endless := resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxReply, needed: endless}
	return resp, nil
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// tapDial makes the connections of dial tapped ones.
func tapDial(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &tappedConn{Conn: conn}, nil
	}
}

// tappedConn counts the writes to a connection, and can be closed to further ones
// in such a way that the count is final.
type tappedConn struct {
	net.Conn
	writes atomic.Int64
	sealed atomic.Bool
}

// Write counts before it looks whether it may, so that either it sees the seal or
// whoever sealed sees its count.
func (c *tappedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	if c.sealed.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// seal ends the writes and returns how many were begun. The connection is of no
// further use.
func (c *tappedConn) seal() int64 {
	c.sealed.Store(true)
	return c.writes.Load()
}

// tapOf finds the tapped connection below any number of TLS layers; nil when there
// is none.
func tapOf(conn net.Conn) *tappedConn {
	for {
		switch c := conn.(type) {
		case *tappedConn:
			return c
		case *tls.Conn:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// boundedBody is a body of which too much is an error.
type boundedBody struct {
	io.ReadCloser
	left   int64
	needed bool // an end before the first byte is an error
}

// Read returns an error once there is more than allowed.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("the answer is larger than the service allows")
	}
	if b.needed && n == 0 && errors.Is(err, io.EOF) {
		return 0, io.ErrUnexpectedEOF
	}
	b.needed = b.needed && n == 0
	return n, err
}

// refusedInvocation reads an error of the SDK's client as the answer of a service that
// did not run the function; false when there was no answer, or what
// broke is the answer of a function that ran.
func refusedInvocation(err error) (queue.Invocation, bool) {
	refused := refusalIn(err)
	if refused == nil || refused.status < 300 {
		return queue.Invocation{}, false
	}
	a := queue.Invocation{Status: refused.status, Code: refused.shape, Message: refused.message}
	if a.Code == "UnknownError" { // the client's word for an answer without any
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

// retryAfter reads a Retry-After header, of seconds or a date; 0 when there is none
// that can be read, and at most 12 h.
func retryAfter(value string, now time.Time) time.Duration {
	var after time.Duration
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		after = at.Sub(now)
	}
	return min(max(after, 0), queue.MaxVisibility)
}
