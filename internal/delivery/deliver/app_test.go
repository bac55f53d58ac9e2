package deliver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }

// app is a server whose script may violate the protocol.
type app struct {
	script func(c *appConn)

	connections, posts atomic.Int64
	running            sync.WaitGroup
}

type appConn struct {
	net.Conn
	app *app
	buf *bufio.Reader
	n   int64
}

type post struct {
	*http.Request
	body string
}

func (c *appConn) read() (p post, ok bool) {
	r, ok := c.readHead()
	if !ok {
		return post{}, false
	}
	body, err := io.ReadAll(r.Body)
	return post{r, string(body)}, err == nil
}

func (c *appConn) readHead() (*http.Request, bool) {
	r, err := http.ReadRequest(c.buf)
	if err != nil {
		return nil, false
	}
	c.app.posts.Add(1)
	return r, true
}

func (c *appConn) write(s string) { io.WriteString(c, s) }

const ok200 = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

func alwaysAnswer(answer string) func(*appConn) {
	return func(c *appConn) {
		for {
			if _, ok := c.read(); !ok {
				return
			}
			c.write(answer)
		}
	}
}

func (a *app) serve(raw net.Conn) {
	n := a.connections.Add(1)
	a.running.Go(func() {
		defer raw.Close()
		a.script(&appConn{Conn: raw, app: a, buf: bufio.NewReader(raw), n: n})
	})
}

func (a *app) listen(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.listenOn(t, l)
	return "http://" + l.Addr().String()
}

func (a *app) listenOn(t testing.TB, l net.Listener) {
	a.running.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			a.serve(raw)
		}
	})
	t.Cleanup(func() { l.Close(); a.running.Wait() })
}

// pipe returns an in-memory connection, as synctest requires.
func (a *app) pipe(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	a.serve(theirs)
	return ours, nil
}

func start(t testing.TB, script func(*appConn), change ...func(*Options)) (*Client, *app) {
	a := &app{script: script}
	return newHTTP(t, append([]func(*Options){func(o *Options) { o.Target = a.listen(t) }}, change...)...), a
}

func startPiped(t testing.TB, script func(*appConn), change ...func(*Options)) (*Client, *app) {
	a := &app{script: script}
	t.Cleanup(a.running.Wait)
	return newHTTP(t, append([]func(*Options){func(o *Options) { o.dial = a.pipe }}, change...)...), a
}

func newHTTP(t testing.TB, change ...func(*Options)) *Client {
	t.Helper()
	opts := &Options{Target: "http://localhost:5000", QueueName: "jobs", Version: "1.0"}
	for _, f := range change {
		f(opts)
	}
	h, err := NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func message(attributes ...queue.Attribute) *queue.Message {
	m := &queue.Message{
		ID: "059f36b4-87a3-44ab-83d2-661975830a7d", Body: `{"n":1}`, Attributes: attributes, ReceiptHandle: "r",
		ReceiveCount:    3,
		SentAt:          time.Date(2026, 11, 20, 12, 0, 0, 999e6, time.UTC),
		FirstReceivedAt: time.Date(2026, 11, 20, 14, 0, 1, 0, time.FixedZone("CET", 3600)),
		SenderID:        "123456789012",
	}
	m.Run = queue.ParseRun(m)
	return m
}

func text(name, value string) queue.Attribute {
	return queue.Attribute{Name: name, Type: "String", Value: value}
}

func deliver(h *Client, m *queue.Message) queue.Result { return h.Deliver(context.Background(), m) }

func want(t testing.TB, r queue.Result, outcome queue.Outcome, status int, reason string) {
	t.Helper()
	if r.Outcome != outcome || r.Status != status || r.Reason != reason {
		t.Errorf("got %v, status %d, reason %q (%v); want %v, status %d, reason %q", r.Outcome, r.Status, r.Reason, r.Err,
			outcome, status, reason)
	}
	if strings.ContainsAny(r.Reason, "\r\n") {
		t.Errorf("reason %q has line breaks", r.Reason)
	}
}

func (a *app) wantCounts(t testing.TB, connections, posts int64) {
	t.Helper()
	if c, p := a.connections.Load(), a.posts.Load(); c != connections || p != posts {
		t.Errorf("the app saw %d POSTs on %d connections, want %d on %d", p, c, posts, connections)
	}
}
