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
	// left means that a byte may have been sent.
	left bool
	// stale means that nothing was sent because the reused connection was dead.
	stale bool
}

type sendingKey struct{}

type onceTransport struct{ next http.RoundTripper }

// Lambda's limit is 6 MiB.
const maxReply = 7 << 20

func (t *onceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var used usedConn
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: used.record}))

	s, _ := req.Context().Value(sendingKey{}).(*sending)
	if s != nil && req.Body != nil && req.ContentLength == int64(len(s.payload)) {
		req.Body = io.NopCloser(bytes.NewReader(s.payload))
	}

	resp, err := t.next.RoundTrip(req)
	left := err == nil || used.mayHaveWritten()
	if s != nil {
		s.left = left
		s.stale = !left && used.reused
	}
	if err != nil {
		return nil, err
	}

	// If closing the connection ends the response, an empty body may be truncated.
	endless := resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxReply, needed: endless}
	return resp, nil
}

type usedConn struct {
	known, reused bool
	conn          *tappedConn // nil if not tapped
	writesBefore  int64
}

func (u *usedConn) record(got httptrace.GotConnInfo) {
	u.known, u.reused = true, got.Reused
	u.conn = tapOf(got.Conn)
	if u.conn != nil {
		u.writesBefore = u.conn.writes.Load()
	}
}

// mayHaveWritten blocks further writes.
func (u *usedConn) mayHaveWritten() bool {
	if !u.known {
		return false
	}
	return u.conn == nil || u.conn.seal() != u.writesBefore
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

func tapDial(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &tappedConn{Conn: conn}, nil
	}
}

// Sealing a tappedConn blocks writes, so that its count is final.
type tappedConn struct {
	net.Conn
	writes atomic.Int64
	sealed atomic.Bool
}

// Write counts first, so that either Write sees the seal or seal sees the write.
func (c *tappedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	if c.sealed.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

func (c *tappedConn) seal() int64 {
	c.sealed.Store(true)
	return c.writes.Load()
}

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
