package deliver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"sync/atomic"
	"time"
)

const (
	// writeGrace is how long the rest of a long request may take to go out once
	// its answer is there; else its connection is not kept.
	writeGrace = 50 * time.Millisecond
	// writeChunk is the most that one write hands over. A request that fits is
	// written before the answer is read; of a longer one both happen at once, so
	// that an app may answer before it has read it all.
	writeChunk = 32 << 10
	// maxAnswerHead bounds the status line and headers of one answer.
	maxAnswerHead = 64 << 10
	readBuffer    = 4 << 10
)

// errHeadTooLong: the answer's headers exceed maxAnswerHead.
var errHeadTooLong = errors.New("the answer's headers are longer than 64 KiB")

// conn is one connection to the app. It carries one exchange at a time and is
// the only place that knows how many bytes of a request went out, and when the
// app last gave a sign of life.
type conn struct {
	stream io.ReadWriteCloser // raw, or TLS over it
	raw    net.Conn
	buf    *bufio.Reader // reads through conn.Read
	peek   *peeker       // nil where the system cannot look without waiting
	out    []byte        // the request's head, then each part of its body
	scrap  []byte        // where an answer's body is read to
	first  []byte        // the begin of the body of an answer that is no success

	reused    bool      // an earlier exchange ended well on it
	idleSince time.Time // when that was

	// Of the exchange that runs:
	idle    time.Duration // the longest silence
	end     time.Time     // when it must be over; zero means never
	written int64         // bytes of the request handed to the kernel
	read    int64         // bytes of the answer
	limit   int64         // bytes that may still be read
	resting bool          // the next read waits anew for a sign of life
	readErr error         // how the stream ended
	stopped atomic.Bool   // the deadlines are in the past, for good
	closing atomic.Bool   // the answer is there: the writer may not wait
	abort   func()        // stop, made once because the runtime asks for a func
}

func newConn(raw net.Conn) *conn {
	c := &conn{raw: raw, stream: raw, peek: newPeeker(raw)}
	c.buf = bufio.NewReaderSize(c, readBuffer)
	c.abort = c.stop
	return c
}

// begin readies the connection for one exchange.
func (c *conn) begin(idle time.Duration, end time.Time) {
	c.idle, c.end = idle, end
	c.written, c.read, c.readErr = 0, 0, nil
	c.limit, c.resting = math.MaxInt64, false
	c.extend()
}

// extend gives the app another idle time, though not beyond the end.
func (c *conn) extend() {
	c.raw.SetDeadline(c.until(time.Now()))
	if c.closing.Load() {
		c.raw.SetWriteDeadline(time.Now().Add(writeGrace))
	}
	if c.stopped.Load() {
		c.raw.SetDeadline(longAgo())
	}
}

func (c *conn) until(now time.Time) time.Time {
	deadline := now.Add(c.idle)
	if !c.end.IsZero() && c.end.Before(deadline) {
		return c.end
	}
	return deadline
}

// stop makes every read and write, also those to come, fail at once. It may be
// called from any goroutine, also after the exchange.
func (c *conn) stop() {
	c.stopped.Store(true)
	c.raw.SetDeadline(longAgo())
}

// longAgo is a deadline that has passed on any clock.
func longAgo() time.Time { return time.Unix(1, 0) }

// watch stops the exchange when ctx ends. The returned func ends the watch and
// reports whether the connection is free of it, so that it can be kept.
func (c *conn) watch(ctx context.Context) (free func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, c.abort)
}

// Read reads for buf. Each read that follows a sign of life may last a whole
// idle time.
func (c *conn) Read(p []byte) (int, error) {
	if c.limit <= 0 {
		c.readErr = errHeadTooLong
		return 0, c.readErr
	}
	if int64(len(p)) > c.limit {
		p = p[:c.limit]
	}
	if c.resting {
		c.extend()
	}
	n, err := c.stream.Read(p)
	c.read += int64(n)
	c.limit -= int64(n)
	c.resting = n > 0
	if err != nil {
		c.readErr = err
	}
	return n, err
}

// send writes what out holds and then body. Each part that was taken is a sign
// of life.
func (c *conn) send(body string) error {
	for {
		n := min(max(writeChunk-len(c.out), 0), len(body))
		c.out = append(c.out, body[:n]...)
		body = body[n:]
		written, err := c.stream.Write(c.out)
		c.written += int64(written)
		c.out = c.out[:0]
		if err != nil || body == "" {
			return err
		}
		c.extend()
	}
}

// alive reports whether an unused connection may carry another request: the app
// has neither closed it nor said anything unasked.
func (c *conn) alive() bool {
	return c.peek == nil || c.peek.quiet()
}

func (c *conn) close() { c.raw.Close() }
