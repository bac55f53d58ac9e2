package deliver

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func (c *appConn) drip(pause time.Duration, parts ...string) {
	for _, part := range parts {
		time.Sleep(pause)
		c.write(part)
	}
}

func (c *appConn) wait() { io.Copy(io.Discard, c.buf) }

func TestTimeouts(t *testing.T) {
	t.Parallel()
	const idle = 180 * time.Second
	const processing = "HTTP/1.1 102 Processing\r\n\r\n"
	for _, test := range []struct {
		name     string
		deadline time.Duration
		app      func(*appConn)
		outcome  queue.Outcome
		status   int
		reason   string
		took     time.Duration
	}{
		{"silence", 0, func(c *appConn) {}, queue.Failed, 0, "no response within 3m0s", idle},
		{"in time", 0, func(c *appConn) { c.drip(idle-1, ok200) }, queue.Done, 200, "", idle - 1},
		{"informational answers", 0, func(c *appConn) {
			c.drip(idle-1, processing, processing, ok200)
		}, queue.Done, 200, "", 3 * (idle - 1)},
		{"silence after one", 0, func(c *appConn) {
			c.drip(time.Second, processing)
		}, queue.Failed, 0, "no response within 3m0s", time.Second + idle},
		{"head in pieces", 0, func(c *appConn) {
			c.drip(idle-1, strings.SplitAfter(ok200, " ")...)
		}, queue.Done, 200, "", 4 * (idle - 1)},
		{"silence in the head", 0, func(c *appConn) {
			c.drip(1, "HTTP/1.1 2")
		}, queue.Failed, 0, "response stalled for 3m0s", idle + 1},
		{"body in pieces", 0, func(c *appConn) {
			c.drip(idle-1, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "a", "b", "c")
		}, queue.Done, 200, "", 4 * (idle - 1)},
		{"silence in the body", 0, func(c *appConn) {
			c.drip(time.Second, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "a")
		}, queue.Failed, 200, "response stalled for 3m0s", 2*time.Second + idle},
		{"silence in the body of a failure", 0, func(c *appConn) {
			c.drip(time.Second, "HTTP/1.1 500 X\r\nContent-Length: 3\r\n\r\n")
		}, queue.Failed, 500, "HTTP 500", time.Second + drainTime},
		{"a failure's body without end", 0, func(c *appConn) {
			c.write("HTTP/1.1 500 X\r\nContent-Length: 3000\r\n\r\n")
			c.drip(drainTime/4, strings.Split(strings.Repeat("x", 20), "")...)
		}, queue.Failed, 500, "HTTP 500", drainTime},
		{"deadline in silence", time.Minute, func(c *appConn) {}, queue.Failed, 0, "deadline of 1m0s passed", time.Minute},
		{"deadline in spite of signs of life", 10 * time.Minute, func(c *appConn) {
			c.drip(time.Minute, strings.SplitAfter(strings.Repeat(processing, 20), "\r\n\r\n")...)
		}, queue.Failed, 0, "deadline of 10m0s passed", 10 * time.Minute},
		{"deadline in the body", time.Minute, func(c *appConn) {
			c.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
		}, queue.Failed, 200, "deadline of 1m0s passed", time.Minute},
		{"within the deadline", 10 * time.Minute, func(c *appConn) {
			c.drip(time.Minute, ok200)
		}, queue.Done, 200, "", time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h, a := startPiped(t, func(c *appConn) {
					c.read()
					test.app(c)
					c.wait()
				}, func(o *Options) { o.Deadline = test.deadline })
				r := deliver(h, message())
				want(t, r, test.outcome, test.status, test.reason)
				if r.Duration != test.took {
					t.Errorf("took %v, want %v", r.Duration, test.took)
				}
				a.wantCounts(t, 1, 1)
			})
		})
	}
}

func TestTimeoutsOfLongMessages(t *testing.T) {
	t.Parallel()
	const parts = 5
	for _, test := range []struct {
		name    string
		app     func(*appConn)
		outcome queue.Outcome
		status  int
		reason  string
		took    time.Duration
	}{
		{"taken slowly", func(c *appConn) {
			r, _ := c.readHead()
			for err := error(nil); err == nil; {
				time.Sleep(100 * time.Second)
				_, err = io.CopyN(io.Discard, r.Body, writeChunk)
			}
			c.drip(100*time.Second, ok200)
		}, queue.Done, 200, "", (parts + 1) * 100 * time.Second},
		{"taken in part", func(c *appConn) {
			time.Sleep(100 * time.Second)
			io.CopyN(io.Discard, c.buf, writeChunk)
			time.Sleep(time.Hour)
		}, queue.Failed, 0, "no response within 3m0s", 280 * time.Second},
		{"success before it is taken", func(c *appConn) {
			c.readHead()
			c.write(ok200)
			time.Sleep(time.Hour)
		}, queue.Done, 200, "", writeGrace},
		{"failure before it is taken", func(c *appConn) {
			c.readHead()
			c.write("HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\n")
			time.Sleep(time.Hour)
		}, queue.Failed, 500, "HTTP 500", writeGrace},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h, _ := startPiped(t, test.app)
				m := message()
				m.Body = strings.Repeat("x", (parts-1)*writeChunk+writeChunk/2)
				r := deliver(h, m)
				want(t, r, test.outcome, test.status, test.reason)
				if r.Duration.Truncate(time.Millisecond) != test.took {
					t.Errorf("took %v, want %v", r.Duration, test.took)
				}
			})
		})
	}
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	silent := func(c *appConn) { c.read(); c.wait() }
	deaf := func(c *appConn) { time.Sleep(time.Hour) }
	trickling := func(c *appConn) {
		for {
			time.Sleep(time.Millisecond)
			if _, err := c.Read(make([]byte, 1)); err != nil {
				return
			}
		}
	}
	for _, test := range []struct {
		name   string
		app    func(*appConn)
		size   int
		status int
	}{
		{"before the answer", silent, 10, 0},
		{"within a long message", deaf, 10 * writeChunk, 0},
		{"within a long message that goes out", trickling, 10 * writeChunk, 0},
		{"within the body", func(c *appConn) {
			c.read()
			c.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n1")
			c.wait()
		}, 10, 200},
	} {
		for _, late := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				h, a := startPiped(t, test.app)
				ctx, cancel := context.WithCancel(t.Context())
				reason := "stopped before the app had responded"
				if late {
					ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
					reason = "deadline passed"
				} else {
					time.AfterFunc(10*time.Second, cancel)
				}
				defer cancel()
				m := message()
				m.Body = strings.Repeat("x", test.size)
				r := h.Deliver(ctx, m)
				outcome := queue.Failed
				if test.name == "within a long message" {
					outcome, reason = queue.Unreached,
						map[bool]string{false: "stopped", true: "deadline passed"}[late]+" before anything was sent"
				}
				want(t, r, outcome, test.status, reason)
				if r.Duration != 10*time.Second {
					t.Errorf("%s: took %v, want 10s", test.name, r.Duration)
				}
				if n := a.connections.Load(); n != 1 {
					t.Errorf("%s: %d connections", test.name, n)
				}
			})
		}
	}
}

func TestContextEndsAfterwards(t *testing.T) {
	t.Parallel()
	h, a := start(t, alwaysAnswer(ok200), func(o *Options) { o.KeepAlive = time.Hour })
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		want(t, h.Deliver(ctx, message()), queue.Done, 200, "")
		cancel()
	}
	a.wantCounts(t, 1, 100)
}

func TestConnectTimeouts(t *testing.T) {
	t.Parallel()
	never := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, test := range []struct {
		name     string
		deadline time.Duration
		cancel   time.Duration
		reason   string
		took     time.Duration
	}{
		{"connect timeout", 0, time.Hour, "no connection within 5s", 5 * time.Second},
		{"deadline", 2 * time.Second, time.Hour, "deadline of 2s passed before anything was sent", 2 * time.Second},
		{"context", 0, time.Second, "stopped before anything was sent", time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHTTP(t, func(o *Options) { o.dial, o.Deadline = never, test.deadline })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := time.AfterFunc(test.cancel, cancel)
			defer stop.Stop()
			r := h.Deliver(ctx, message())
			want(t, r, queue.Unreached, 0, test.reason)
			if r.Duration != test.took {
				t.Errorf("%s: took %v, want %v", test.name, r.Duration, test.took)
			}
			start := time.Now()
			if err := h.Probe(t.Context()); err == nil || err.Error() != "no connection within 4s" ||
				time.Since(start) != probeWait {
				t.Errorf("probe: %v after %v", err, time.Since(start))
			}
		})
	}
}

func TestKeepAliveTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 10)
		h, a := startPiped(t, func(c *appConn) { alwaysAnswer(ok200)(c); ended <- time.Now() })
		deliver(h, message())
		time.Sleep(900 * time.Millisecond)
		deliver(h, message())
		last := time.Now()
		if at := <-ended; at.Sub(last) != time.Second {
			t.Errorf("closed %v after its last use, want 1s", at.Sub(last))
		}
		a.wantCounts(t, 1, 2)
		deliver(h, message())
		a.wantCounts(t, 2, 3)
	})
}
