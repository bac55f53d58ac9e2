package aws

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

type scriptedServer struct {
	url                   string
	connections, requests atomic.Int64
	closed                chan struct{}
}

const lastAnswer = "\x00" // at the end of a text: close the connection after sending it

func serveScript(t *testing.T, texts ...string) *scriptedServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scriptedServer{url: "http://" + l.Addr().String(), closed: make(chan struct{}, 100)}
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			running.Go(func() {
				defer func() { conn.Close(); s.closed <- struct{}{} }()
				for in := bufio.NewReader(conn); ; {
					if _, err := readRequest(in); err != nil {
						return
					}
					n := int(s.requests.Add(1)) - 1
					text, last := strings.CutSuffix(texts[min(n, len(texts)-1)], lastAnswer)
					if _, err := io.WriteString(conn, text); err != nil || last {
						return
					}
				}
			})
		}
	})
	return s
}

func (s *scriptedServer) open(t *testing.T) *Queue {
	t.Helper()
	client, err := OpenSQS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	q, err := client.Queue(t.Context(), s.url+"/123456789012/jobs")
	if err != nil {
		t.Fatal(err)
	}
	return q
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

func TestConnectionsAreReusedAfterCompleteResponses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, answer string
		fails        string
		connections  int64
	}{
		{"content length", okAnswer, "", 1},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", "", 1},
		{"chunked with trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: 1\r\n\r\n", "", 1},
		{"informational responses first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + okAnswer,
			"", 1},
		{"error response", "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}", "HTTP status 400", 1},
		{"redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "HTTP status 307", 1},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", "invalid SQS response", 1},
		{"connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", "", 2},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", "", 2},
		{"until the end of the connection", "HTTP/1.1 200 OK\r\n\r\n{}" + lastAnswer, "", 2},
		{"bytes after the response", okAnswer + "HTTP/1.1 200 OK\r\n", "", 2},
		{"shorter than its length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}" + lastAnswer, "unexpected EOF", 2},
		{"cut chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}" + lastAnswer, "unexpected EOF", 2},
		{"switched protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "switches protocols", 2},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "Content-Length", 2},
		{"not HTTP", "SSH-2.0-OpenSSH\r\n", "malformed", 2},
		{"nothing", lastAnswer, "unexpected EOF", 2},
		{"long headers", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 100) + "\r\n",
			"longer than 64 KiB", 2},
		{"many informational responses", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 4000) + okAnswer,
			"longer than 64 KiB", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serveScript(t, test.answer, okAnswer)
			q := s.open(t)
			_, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait})
			if test.fails == "" && err != nil || test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)) {
				t.Errorf("the first call failed with %v, want %q", err, test.fails)
			}
			if _, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait}); err != nil {
				t.Errorf("the second call failed: %v", err)
			}
			if c, r := s.connections.Load(), s.requests.Load(); c != test.connections || r != 2 {
				t.Errorf("%d connections and %d requests, want %d and 2", c, r, test.connections)
			}
		})
	}
}

func TestClosedIdleConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	s := serveScript(t, okAnswer+lastAnswer)
	q := s.open(t)
	transport := q.sqs.service.exchanger.transport
	dial := transport.DialContext
	var newest net.Conn
	transport.DialContext = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		newest, err = dial(ctx, network, address)
		return newest, err
	}
	for n := range int64(5) {
		if _, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait}); err != nil {
			t.Fatal(err)
		}
		if r := s.requests.Load(); r != n+1 {
			t.Errorf("%d requests after %d calls", r, n+1)
		}
		<-s.closed
		testpeer.AwaitReadable(t, newest)
	}
}

type brokenConn struct {
	net.Conn
	writes, accepts int
}

func (c *brokenConn) Write(p []byte) (int, error) {
	if c.writes++; c.writes > 1 {
		return c.accepts, errors.New("broken")
	}
	return c.Conn.Write(p)
}

func TestRequestIsSentAgainOnlyIfNothingWasSent(t *testing.T) {
	t.Parallel()
	for accepts, want := range []error{nil, queue.ErrUnreachable} {
		s := serveScript(t, okAnswer)
		q := s.open(t)
		dial := q.sqs.service.exchanger.transport.DialContext
		q.sqs.service.exchanger.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			return &brokenConn{Conn: c, accepts: accepts}, err
		}
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for n, want := range []error{nil, want} {
			if accepts == 1 && n == 1 {
				limited, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				want = context.DeadlineExceeded
			}
			if _, err := q.Receive(limited, queue.ReceiveRequest{Max: 1, Wait: noWait}); !errors.Is(err, want) {
				t.Errorf("call %d, %d bytes accepted: %v, want %v", n, accepts, err, want)
			}
		}
		if c := s.connections.Load(); c != int64(2-accepts) {
			t.Errorf("%d connections after a write that accepted %d bytes", c, accepts)
		}
	}
}

func TestEndOfTheContextEndsTheExchange(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{"no response": "", "half a head": "HTTP/1.1 200 OK\r\nContent-",
		"half a body": "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveScript(t, start, okAnswer)
			q := s.open(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			transport := q.sqs.service.exchanger.transport
			dial := transport.DialContext
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				return &cancelingConn{Conn: conn, left: len(start), cancel: func() {
					for s.requests.Load() == 0 {
						runtime.Gosched()
					}
					cancel()
				}}, err
			}
			if _, err := q.Receive(ctx, queue.ReceiveRequest{Max: 1}); err != context.Canceled {
				t.Errorf("got %v, want context.Canceled", err)
			}
			if _, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait}); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if c := s.connections.Load(); c != 2 {
				t.Errorf("%d connections, want 2", c)
			}
		})
	}
}

// cancelingConn calls cancel before a read that would block after the first left bytes.
type cancelingConn struct {
	net.Conn
	left   int
	cancel func()
}

func (c *cancelingConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		c.cancel()
	}
	n, err := c.Conn.Read(p)
	c.left -= n
	return n, err
}

func TestEarlyRejectionIsRead(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		in := bufio.NewReader(theirs)
		for line := ""; line != "\r\n"; {
			line, _ = in.ReadString('\n')
		}
		io.WriteString(theirs, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
	}()
	s := serveScript(t, okAnswer)
	q := s.open(t)
	q.sqs.service.exchanger.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return &shortWriter{Conn: ours, most: 2000}, nil
	}
	_, err := q.SendOnce(t.Context(), queue.Outgoing{Body: strings.Repeat("x", 100_000)})
	if err == nil || !strings.Contains(err.Error(), "413") {
		t.Errorf("got %v, want the status 413", err)
	}
	if _, kept := q.sqs.service.exchanger.pool(origin{"http", strings.TrimPrefix(s.url, "http://")}).Get(time.Now()); kept {
		t.Error("the connection of a request that was not read was kept")
	}
}

type shortWriter struct {
	net.Conn
	most int
}

func (c *shortWriter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p[:min(len(p), c.most)])
	if err == nil && n < len(p) {
		err = net.ErrClosed
	}
	return n, err
}

func TestCertificatesAreVerified(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{}`)
	}))
	t.Cleanup(server.Close)
	s := &scriptedServer{url: server.URL}
	_, err := s.open(t).Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want an untrusted certificate", err)
	}

	bundle := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(bundle, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	q := s.open(t)
	for range 2 {
		if _, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait}); err != nil {
			t.Errorf("with the bundle: %v", err)
		}
	}
	s.url = strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	_, err = s.open(t).Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait})
	if err == nil || !strings.Contains(err.Error(), "not localhost") {
		t.Errorf("with another name: %v", err)
	}
}

func TestProxyIsUsed(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{}`)
	}))
	t.Cleanup(server.Close)
	var connects atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			io.WriteString(w, `{}`)
			return
		}
		connects.Add(1)
		up, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		down, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { io.Copy(up, down); up.Close() }()
		io.Copy(down, up)
		down.Close()
	}))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, url string
		proxy     *url.URL
		connects  int64
	}{
		{"https through a proxy", server.URL, at, 1},
		{"http through a proxy", "http://sqs.invalid", at, 0},
		{"a host in NO_PROXY", server.URL, nil, 0},
	} {
		connects.Store(0)
		q := (&scriptedServer{url: test.url}).open(t)
		transport := q.sqs.service.exchanger.transport
		transport.Proxy = func(*http.Request) (*url.URL, error) { return test.proxy, nil }
		transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		if _, err := q.Receive(t.Context(), queue.ReceiveRequest{Max: 1, Wait: noWait}); err != nil ||
			connects.Load() != test.connects {
			t.Errorf("%s: %v, %d CONNECT requests, want %d", test.name, err, connects.Load(), test.connects)
		}
	}
}

func TestIPv6Endpoint(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6:", err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.Host != l.Addr().String() {
				t.Errorf("host %s, want %s", r.Host, l.Addr())
			}
			io.WriteString(w, `{}`)
		})}}
	server.Start()
	t.Cleanup(server.Close)
	if _, err := (&scriptedServer{url: server.URL}).open(t).Receive(t.Context(),
		queue.ReceiveRequest{Max: 1, Wait: noWait}); err != nil {
		t.Error(err)
	}
}

type answerConn struct {
	text    io.Reader
	written chan struct{}
	once    *sync.Once
}

func newAnswerConn(text []byte) *answerConn {
	return &answerConn{strings.NewReader(string(text)), make(chan struct{}), new(sync.Once)}
}

func (c *answerConn) Read(p []byte) (int, error) { <-c.written; return c.text.Read(p) }

func (c *answerConn) Write(p []byte) (int, error) {
	c.once.Do(func() { close(c.written) })
	return len(p), nil
}

func (c *answerConn) Close() error                     { c.once.Do(func() { close(c.written) }); return nil }
func (c *answerConn) LocalAddr() net.Addr              { return nil }
func (c *answerConn) RemoteAddr() net.Addr             { return nil }
func (c *answerConn) SetDeadline(time.Time) error      { return nil }
func (c *answerConn) SetReadDeadline(time.Time) error  { return nil }
func (c *answerConn) SetWriteDeadline(time.Time) error { return nil }

func post(t *testing.T, next http.RoundTripper) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://sqs.invalid/", io.NopCloser(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 2
	resp, err := next.RoundTrip(req)
	if err != nil {
		return 0, nil, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, ""
	}
	return resp.StatusCode, resp.Header, string(text)
}

// FuzzExchange checks that http.Transport reads every response that the exchanger accepts identically, and that a
// connection is kept only if no bytes follow.
func FuzzExchange(f *testing.F) {
	for _, text := range []string{okAnswer, okAnswer + okAnswer, "HTTP/1.1 100 Continue\r\n\r\n" + okAnswer,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n{}",
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 101 X\r\nUpgrade: y\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 5\r\n\r\n{\"a\"",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: +2\r\n\r\n{}", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var conn *answerConn
		transport := &http.Transport{DisableCompression: true, ReadBufferSize: 16 << 10,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				conn = newAnswerConn(text)
				return conn, nil
			}, IdleConnTimeout: time.Minute}
		defer transport.CloseIdleConnections()
		x := newExchanger(transport)
		defer x.close()
		status, header, body := post(t, x)
		if status == 0 {
			return
		}

		rest, _ := io.ReadAll(conn.text)
		if c, kept := x.pool(origin{"http", "sqs.invalid"}).Get(time.Now()); kept {
			defer c.Close()
			if len(rest) > 0 && len(text)-len(rest) < 16<<10 || c.in.Buffered() > 0 {
				t.Errorf("the connection was kept with %d bytes to read", len(rest))
			}
		}

		wantStatus, wantHeader, wantBody := post(t, transport)
		if status != wantStatus || body != wantBody || len(header) != len(wantHeader) {
			t.Errorf("got %d %v %q, http.Transport reads %d %v %q", status, header, body, wantStatus, wantHeader, wantBody)
		}
		for name := range wantHeader {
			if strings.Join(header[name], "\n") != strings.Join(wantHeader[name], "\n") {
				t.Errorf("header %s is %q, want %q", name, header[name], wantHeader[name])
			}
		}
	})
}
