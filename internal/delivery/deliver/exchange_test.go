package deliver

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

type fate int

const (
	kept fate = iota
	closed
	dropped // by the client: it may be out of sync
)

func TestOddAnswers(t *testing.T) {
	t.Parallel()
	const done, failed = queue.Done, queue.Failed
	head := "HTTP/1.1 200 OK\r\n"
	for _, test := range []struct {
		name, answer string
		outcome      queue.Outcome
		status       int
		reason       string
		fate         fate
	}{
		{"none", "", failed, 0, "connection closed without a response", closed},
		{"half a status line", "HTTP/1.1 200", failed, 0, "response was cut off", closed},
		{"half a head", head + "Content-Le", failed, 0, "response was cut off", closed},
		{"half a body", head + "Content-Length: 10\r\n\r\n12345", failed, 200, "response was cut off", closed},
		{"no body of those announced", head + "Content-Length: 10\r\n\r\n", failed, 200, "response was cut off", closed},
		{"half a chunk", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n123", failed, 200, "response was cut off", closed},
		{"no last chunk", head + "Transfer-Encoding: " +
			"chunked\r\n\r\n5\r\n12345\r\n", failed, 200, "response was cut off", closed},
		{"bad chunk", head + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", failed, 200, "response was cut off", dropped},
		{"half a body of a failure", "HTTP/1.1 500 X\r\nContent-Length: 10\r\n\r\n12345", failed, 500, "HTTP 500", closed},
		{"not HTTP", "SSH-2.0-OpenSSH_9.6\r\n", failed, 0, "response is not HTTP", dropped},
		{"no number", "HTTP/1.1 OK\r\n\r\n", failed, 0, "response is not HTTP", dropped},
		{"negative length", head + "Content-Length: -1\r\n\r\n", failed, 0, "response is not HTTP", dropped},
		{"two lengths", head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n12", failed, 0, "response is not HTTP", dropped},
		{"status beyond all", "HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n", failed, 999, "HTTP 999", kept},
		{"status below all", "HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n", failed, 0, "HTTP 0", kept},
		{"long head", head + "X: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", failed, 0,
			"response headers longer than 64 KiB", dropped},
		{"bytes beyond ASCII in a head", head + "X: \xff\x80\r\nContent-Length: 0\r\n\r\n", done, 200, "", kept},
		{"control bytes in a head", head + "X: \x01\r\nContent-Length: 0\r\n\r\n", failed, 0, "response is not HTTP", dropped},
		{"empty body", head + "Content-Length: 0\r\n\r\n", done, 200, "", kept},
		{"body", head + "Content-Length: 5\r\n\r\nhello", done, 200, "", kept},
		{"chunked", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", done, 200, "", kept},
		{"trailers", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n", done, 200, "", kept},
		{"body until the end", head + "\r\nhello", done, 200, "", closed},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", done, 200, "", closed},
		{"HTTP/1.0 with length", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", done, 200, "", dropped},
		{"close announced", head + "Connection: close\r\nContent-Length: 0\r\n\r\n", done, 200, "", dropped},
		{"as long as is read", head + "Content-Length: 1000\r\n\r\n" + strings.Repeat("x", 1000), done, 200, "", kept},
		{"longer than is read", head + "Content-Length: 1001\r\n\r\n" + strings.Repeat("x", 1001), done, 200, "", dropped},
		{"a failure longer than is read", "HTTP/1.1 500 X\r\nContent-Length: 9999\r\n\r\n" + strings.Repeat("x", 9999),
			failed, 500, "HTTP 500", dropped},
		{"informational first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + ok200, done, 200, "",
			kept},
		{"informational only", "HTTP/1.1 102 Processing\r\n\r\n", failed, 0, "connection closed without a response", closed},
		{"another protocol", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", failed, 101,
			"HTTP 101 (the app requires another protocol)", dropped},
		{"bytes beyond the answer", ok200 + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", done, 200, "", dropped},
		{"204 with a body", "HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\nhello", failed, 204,
			"HTTP 204 (not among the success codes)", dropped},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h, a := start(t, func(c *appConn) {
				for _, ok := c.read(); ok; _, ok = c.read() {
					c.write(test.answer)
					if test.fate == closed {
						return
					}
				}
			}, func(o *Options) { o.maxBody, o.KeepAlive = 1000, time.Hour })
			want(t, deliver(h, message()), test.outcome, test.status, test.reason)
			deliver(h, message())
			if test.fate == kept {
				a.wantCounts(t, 1, 2)
			} else {
				a.wantCounts(t, 2, 2)
			}
		})
	}
}

// If a connection is closed after a request, the app may be processing the message.
func TestNoSecondPostOnAReusedConnection(t *testing.T) {
	t.Parallel()
	for _, m := range []*queue.Message{
		message(),
		message(text("Idempotency-Key", "m1"), text("X-Idempotency-Key", "m1")),
		message(text(queue.AttributePath, "/backup")),
	} {
		h, a := start(t, func(c *appConn) {
			c.read()
			c.write(ok200)
			c.read()
		}, func(o *Options) { o.KeepAlive = time.Hour })
		want(t, deliver(h, m), queue.Done, 200, "")
		r := deliver(h, m)
		want(t, r, queue.Failed, 0, "connection closed without a response")
		if r.Err == nil {
			t.Error("no cause")
		}
		a.wantCounts(t, 1, 2)
	}
}

func TestClosedWhileUnused(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	var newest net.Conn
	h, a := start(t, func(c *appConn) {
		c.read()
		c.write(ok200)
		c.Close()
		closed <- struct{}{}
	}, func(o *Options) { o.KeepAlive, o.dial = time.Hour, dialing(&newest) })
	for range 5 {
		want(t, deliver(h, message()), queue.Done, 200, "")
		<-closed
		testpeer.AwaitReadable(t, newest)
	}
	a.wantCounts(t, 5, 5)
}

func TestUnsolicitedResponseIsIgnored(t *testing.T) {
	t.Parallel()
	said := make(chan struct{})
	var newest net.Conn
	h, a := start(t, func(c *appConn) {
		c.read()
		c.write(ok200)
		if c.n == 1 {
			<-said
			c.write(ok200)
			c.read()
		}
	}, func(o *Options) { o.KeepAlive, o.dial = time.Hour, dialing(&newest) })
	want(t, deliver(h, message()), queue.Done, 200, "")
	said <- struct{}{}
	testpeer.AwaitReadable(t, newest)
	want(t, deliver(h, message()), queue.Done, 200, "")
	a.wantCounts(t, 2, 2)
}

// dialing records the newest connection.
func dialing(newest *net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		*newest, err = new(net.Dialer).DialContext(ctx, network, address)
		return *newest, err
	}
}

type spoilable struct {
	net.Conn
	spoiled *atomic.Bool
}

func (c spoilable) Write(p []byte) (int, error) {
	if c.spoiled.Load() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

func TestNothingWritten(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"short": "x", "long": strings.Repeat("x", 2*writeChunk)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections []*atomic.Bool
			var spoilNew bool
			reconnected := 0
			h, a := startPiped(t, alwaysAnswer(ok200), func(o *Options) {
				o.KeepAlive = time.Hour
				o.Events.Reconnected = func() { reconnected++ }
				pipe := o.dial
				o.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					raw, err := pipe(ctx, network, address)
					spoiled := &atomic.Bool{}
					spoiled.Store(spoilNew)
					connections = append(connections, spoiled)
					return spoilable{raw, spoiled}, err
				}
			})
			m := message()
			m.Body = body
			want(t, deliver(h, m), queue.Done, 200, "")
			connections[0].Store(true)
			want(t, deliver(h, m), queue.Done, 200, "")
			connections[1].Store(true)
			spoilNew = true
			want(t, deliver(h, m), queue.Unreached, 0, "connection closed before anything was sent")
			a.wantCounts(t, 3, 2)
			if reconnected != 2 {
				t.Errorf("reconnected %d times, want 2", reconnected)
			}
		})
	}
}

func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		script  func(c *appConn, over <-chan struct{})
		outcome queue.Outcome
		status  int
		reason  string
	}{
		{"success, then reads", func(c *appConn, over <-chan struct{}) {
			r, _ := c.readHead()
			c.write(ok200)
			io.Copy(io.Discard, r.Body)
		}, queue.Done, 200, ""},
		{"failure, never reads", func(c *appConn, over <-chan struct{}) {
			c.readHead()
			c.write("HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n")
			<-over
		}, queue.Failed, 413, "HTTP 413 (the message is too long for the app)"},
		{"failure, closes", func(c *appConn, over <-chan struct{}) {
			c.readHead()
			c.write("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
			c.Conn.(*net.TCPConn).CloseWrite()
			<-over
		}, queue.Failed, 500, "HTTP 500"},
		{"half-close without an answer", func(c *appConn, over <-chan struct{}) {
			r, _ := c.readHead()
			c.Conn.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, r.Body)
		}, queue.Failed, 0, "connection closed without a response"},
	}
	for _, size := range []int{100, 8 << 20} {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				over := make(chan struct{})
				h, a := start(t, func(c *appConn) { test.script(c, over) })
				t.Cleanup(func() { close(over) })
				m := message()
				m.Body = strings.Repeat("x", size)
				want(t, deliver(h, m), test.outcome, test.status, test.reason)
				a.wantCounts(t, 1, 1)
			})
		}
	}
}

func TestEndlessBodies(t *testing.T) {
	t.Parallel()
	endless := func(encoding string, part []byte) func(*appConn) {
		return func(c *appConn) {
			c.read()
			c.write("HTTP/1.1 200 OK\r\n" + encoding + "\r\n")
			for {
				if _, err := c.Write(part); err != nil {
					return
				}
			}
		}
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 10<<20))
	z.Close()
	for name, script := range map[string]func(*appConn){
		"until the end": endless("", make([]byte, 1<<10)),
		"announced":     endless("Content-Length: 10737418240\r\n", make([]byte, 1<<10)),
		"chunked":       endless("Transfer-Encoding: chunked\r\n", []byte("5\r\nhello\r\n")),
		"gzip":          endless("Content-Encoding: gzip\r\n", bomb.Bytes()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, a := start(t, script)
			want(t, deliver(h, message()), queue.Done, 200, "")
			a.wantCounts(t, 1, 1)
		})
	}
}
