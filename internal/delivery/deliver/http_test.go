package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestBodyArrivesByteForByte(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	h, a := start(t, func(c *appConn) {
		for p, ok := c.read(); ok; p, ok = c.read() {
			bodies <- p.body
			c.write(ok200)
		}
	})
	long := strings.Repeat("0123456789abcdef", 64<<10)
	sent := []string{"", "x", "\x00\r\n\r\nPOST / HTTP/1.1\r\n", "é\xff", long[:writeChunk-1], long[:writeChunk],
		long[:writeChunk+1], long}
	for _, body := range sent {
		m := message()
		m.Body = body
		want(t, deliver(h, m), queue.Done, 200, "")
		if got := <-bodies; got != body {
			t.Errorf("a body of %d bytes arrived as %d others", len(body), len(got))
		}
	}
	a.wantCounts(t, 1, int64(len(sent)))
}

func TestLongBodyIsWrittenWhileTheAnswerIsRead(t *testing.T) {
	t.Parallel()
	h, a := start(t, func(c *appConn) {
		for r, ok := c.readHead(); ok; r, ok = c.readHead() {
			c.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			part := make([]byte, 4<<10)
			for n, err := r.Body.Read(part); err == nil; n, err = r.Body.Read(part) {
				fmt.Fprintf(c, "%x\r\n%s\r\n", n, part[:n])
			}
			c.write("0\r\n\r\n")
		}
	}, func(o *Options) { o.maxBody = 4 << 20 })
	m := message()
	m.Body = strings.Repeat("x", 1<<20)
	want(t, deliver(h, m), queue.Done, 200, "")
	want(t, deliver(h, m), queue.Done, 200, "")
	a.wantCounts(t, 1, 2)
}

func TestPeriodicMessageHasNoBodyAndItsOwnPath(t *testing.T) {
	t.Parallel()
	seen := make(chan post, 1)
	h, _ := start(t, func(c *appConn) {
		p, _ := c.read()
		seen <- p
		c.write(ok200)
	})
	m := message(text(queue.AttributePath, "/backup?x=1"), text(queue.AttributeTask, "job"),
		text(queue.AttributeTime, "2017-03-22 23:10:00 UTC"))
	m.Body = "elasticbeanstalk scheduled job"
	want(t, deliver(h, m), queue.Done, 200, "")
	p := <-seen
	if p.RequestURI != "/backup?x=1" || p.body != "" || p.Header.Get("Content-Length") != "0" {
		t.Errorf("%s, length %q, body %q", p.RequestURI, p.Header.Get("Content-Length"), p.body)
	}
	if p.Header.Get("X-Aws-Sqsd-Taskname") != "job" || p.Header.Get("X-Aws-Sqsd-Scheduled-At") != "2017-03-22T23:10:00Z" {
		t.Errorf("%v", p.Header)
	}
}

func TestEveryStatus(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	h, a := start(t, func(c *appConn) {
		for p, ok := c.read(); ok; p, ok = c.read() {
			c.write("HTTP/1.1 " + p.body + " Some Words\r\nLocation: " + other.URL + "/x?secret\r\nContent-Length: 0\r\n\r\n")
			if p.body[0] == '1' {
				return
			}
		}
	})
	for code := 100; code <= 599; code++ {
		m := message()
		m.Body = strconv.Itoa(code)
		r := deliver(h, m)
		outcome, status := queue.Failed, code
		if code == 200 {
			outcome = queue.Done
		}
		if code < 200 && code != 101 {
			status = 0
		}
		if r.Outcome != outcome || r.Status != status || (r.Reason == "") != (code == 200) {
			t.Errorf("status %d: %+v", code, r)
		}
		if strings.Contains(r.Reason, "secret") {
			t.Errorf("status %d: the reason shows the redirect's query: %q", code, r.Reason)
		}
	}
	a.wantCounts(t, 101, 500)
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

func TestSuccessCodes(t *testing.T) {
	t.Parallel()
	codes, err := ParseStatusSet("204,5xx")
	if err != nil {
		t.Fatal(err)
	}
	h, _ := start(t, func(c *appConn) {
		for p, ok := c.read(); ok; p, ok = c.read() {
			c.write("HTTP/1.1 " + p.body + " X\r\n" + map[bool]string{false: "Content-Length: 0\r\n"}[p.body == "204"] + "\r\n")
		}
	}, func(o *Options) { o.SuccessCodes = codes })
	for _, test := range []struct {
		code    int
		outcome queue.Outcome
		reason  string
	}{{200, queue.Failed, "HTTP 200 (not among the success codes)"}, {204, queue.Done, ""}, {500, queue.Done, ""},
		{404, queue.Failed, "HTTP 404 for POST / (check http_path)"}} {
		m := message()
		m.Body = strconv.Itoa(test.code)
		want(t, deliver(h, m), test.outcome, test.code, test.reason)
	}
}

func TestResultHasDurationAndRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := startPiped(t, func(c *appConn) {
			c.read()
			time.Sleep(1500 * time.Millisecond)
			c.write("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")
		})
		r := deliver(h, message())
		want(t, r, queue.Failed, 503, "HTTP 503")
		if r.RetryAfter != 7*time.Second || r.Duration != 1500*time.Millisecond || r.Err != nil {
			t.Errorf("%+v", r)
		}
	})
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	const senders, messages = 3, 60
	h, a := start(t, alwaysAnswer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
		func(o *Options) { o.KeepAlive = time.Hour })
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for range messages / senders {
				want(t, deliver(h, message()), queue.Done, 200, "")
			}
		})
	}
	all.Wait()
	if n := a.connections.Load(); n > senders {
		t.Errorf("%d connections, want at most %d", n, senders)
	}
	if n := a.posts.Load(); n != messages {
		t.Errorf("%d POSTs, want %d", n, messages)
	}
}

func TestKeepAliveOff(t *testing.T) {
	t.Parallel()
	h, a := start(t, func(c *appConn) {
		p, _ := c.read()
		if !p.Close {
			t.Error("the request has no Connection: close")
		}
		c.write(ok200)
		c.read()
	}, func(o *Options) { o.KeepAlive = -1 })
	for range 3 {
		want(t, deliver(h, message()), queue.Done, 200, "")
	}
	a.wantCounts(t, 3, 3)
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "app.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	hosts := make(chan string, 3)
	a := &app{script: func(c *appConn) {
		for p, ok := c.read(); ok; p, ok = c.read() {
			hosts <- p.Host + p.RequestURI
			c.write(ok200)
		}
	}}
	a.listenOn(t, l)
	for _, target := range []string{"unix://" + socket, "http+unix://" + socket,
		"http+unix://" + url.PathEscape(socket) + "/jobs"} {
		h := newHTTP(t, func(o *Options) { o.Target = target })
		if err := h.Probe(t.Context()); err != nil {
			t.Errorf("%s: %v", target, err)
		}
		want(t, deliver(h, message()), queue.Done, 200, "")
		path := map[bool]string{true: "localhost/jobs", false: "localhost/"}[strings.HasSuffix(target, "/jobs")]
		if got := <-hosts; got != path {
			t.Errorf("%s reached %s, want %s", target, got, path)
		}
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || !strings.HasPrefix(r.Host, "localhost:") {
			t.Errorf("%s for %s", r.Proto, r.Host)
		}
		w.Write([]byte("hello"))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	h := newHTTP(t, func(o *Options) { o.Target, o.tls = server.URL, &tls.Config{RootCAs: roots} })
	for range 3 {
		want(t, deliver(h, message()), queue.Done, 200, "")
	}
	foreign := newHTTP(t, func(o *Options) { o.Target = server.URL })
	want(t, deliver(foreign, message()), queue.Unreached, 0, "certificate not trusted")
	plain, _ := start(t, func(c *appConn) { c.write("hello, who is there?\r\n") })
	plain.transport.dialer.tls = &tls.Config{ServerName: "localhost"}
	want(t, deliver(plain, message()), queue.Unreached, 0, "TLS handshake failed")
}

func TestProbe(t *testing.T) {
	t.Parallel()
	h, _ := start(t, func(c *appConn) {
		if p, ok := c.read(); ok {
			t.Errorf("the probe sent %v", p)
		}
	})
	if err := h.Probe(t.Context()); err != nil {
		t.Errorf("the app listens: %v", err)
	}
	plain, _ := start(t, func(c *appConn) { c.write("hello, who is there?\r\n") })
	plain.transport.dialer.tls = &tls.Config{ServerName: "localhost"}
	if err := plain.Probe(t.Context()); err == nil || err.Error() != "TLS handshake failed" {
		t.Errorf("no TLS where it is wanted: %v", err)
	}
	down := newHTTP(t, func(o *Options) { o.Target = "http://127.0.0.1:" + testpeer.FreePort(t) })
	err := down.Probe(t.Context())
	if err == nil || err.Error() != "connection refused" || errors.Unwrap(err) == nil {
		t.Errorf("without a listener: %v", err)
	}
}

// TLS servers log connections that end during the handshake.
func TestProbeIsNotLoggedByTLSServers(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	app := httptest.NewUnstartedServer(http.NotFoundHandler())
	app.Config.ErrorLog = log.New(&logged, "", 0)
	closed := make(chan struct{}, 3)
	app.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	app.StartTLS()
	h := newHTTP(t, func(o *Options) {
		o.Target = app.URL
		o.tls = app.Client().Transport.(*http.Transport).TLSClientConfig
	})
	for range 3 {
		if err := h.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		<-closed
	}
	app.Close()
	if logged.Len() > 0 {
		t.Errorf("the server logged: %s", &logged)
	}
}

func TestCloseEndsReuse(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	h, _ := start(t, func(c *appConn) {
		for _, ok := c.read(); ok; _, ok = c.read() {
			c.write(ok200)
		}
		ended <- struct{}{}
	}, func(o *Options) { o.KeepAlive = time.Hour })
	want(t, deliver(h, message()), queue.Done, 200, "")
	h.Close()
	<-ended
	want(t, deliver(h, message()), queue.Done, 200, "")
	<-ended
}

func TestEvents(t *testing.T) {
	t.Parallel()
	var seen []string
	var address string
	h, _ := start(t, alwaysAnswer(ok200), func(o *Options) {
		address = strings.TrimPrefix(o.Target, "http://")
		o.Events = Events{
			Connected: func(c Connected) { seen = append(seen, fmt.Sprintf("connected %s %v", c.Address, c.Err)) },
			AttributesDropped: func(d AttributesDropped) {
				seen = append(seen, fmt.Sprintf("dropped %d of %s", d.Count, d.MessageID))
			},
		}
	})
	deliver(h, message())
	deliver(h, message(text("a", "\n"), text("b", "\r")))
	expected := []string{"connected " + address + " <nil>", "dropped 2 of " + message().ID}
	if !slices.Equal(seen, expected) {
		t.Errorf("%q, want %q", seen, expected)
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	h, a := start(t, alwaysAnswer(ok200))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := h.Deliver(ctx, message())
	want(t, r, queue.Unreached, 0, "stopped before anything was sent")
	if !errors.Is(r.Err, context.Canceled) {
		t.Errorf("err %v", r.Err)
	}
	a.wantCounts(t, 0, 0)
}
