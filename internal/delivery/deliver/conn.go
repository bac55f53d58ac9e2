package deliver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// writeGrace is how long writing a request may take after its response has arrived.
	writeGrace = 50 * time.Millisecond
	// writeChunk is the size of one write. Longer requests are written while the response is read, so that the app
	// can respond early.
	writeChunk    = 32 << 10
	maxAnswerHead = 64 << 10
	readBuffer    = 4 << 10
	// maxAnswerBody is how much of a response body is read. Connections with longer responses are closed.
	maxAnswerBody = 64 << 10
	// answerRead is how much of an unsuccessful response is kept.
	answerRead = 2 << 10
	// drainTime limits reading the body of an unsuccessful response, which cannot change the result.
	drainTime = time.Second
)

// The parser's errors are not returned, because they quote the response.
var (
	errHeadTooLong = errors.New("the answer's headers are longer than 64 KiB")
	errGarbled     = errors.New("the answer is not HTTP")
)

// isLate reports whether a deadline of the exchange passed, as opposed to a network timeout.
func isLate(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// isTimeout reports any kind of timeout.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// isClosed reports whether the peer closed the connection. A peer that has not read everything resets it.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// conn is a connection to the app. It carries one exchange at a time and tracks activity.
type conn struct {
	stream io.ReadWriteCloser // raw, or TLS over it
	raw    net.Conn
	buf    *bufio.Reader // reads through conn.Read
	peek   *peeker       // nil without non-blocking reads
	out    []byte        // head, then parts of the body

	// Buffers reused by the next exchange:
	scrap    []byte        // for the body
	first    []byte        // kept start of the body
	response http.Response // a plain response
	body     exactBody     // body of a plain response

	idleSince time.Time // end of the last exchange

	// State of the current exchange:
	idle    time.Duration // maximum silence
	end     time.Time     // deadline; zero if none
	written int64         // request bytes passed to the kernel
	read    int64         // response bytes
	limit   int64         // response bytes that may still be read
	resting bool          // the next read gets a new idle timeout
	readErr error
	stopped atomic.Bool // reads and writes fail forever
	closing atomic.Bool // the response is there, so writing must end
	abort   func()      // c.stop, allocated once

	// Instructions of the app:
	extended bool   // it chose the idle timeout
	problem  string // why an instruction is ignored; "" if none is
}

func newConn(raw net.Conn) *conn {
	c := &conn{raw: raw, stream: raw}
	if file, ok := raw.(syscall.Conn); ok {
		c.peek = newPeeker(file)
	}
	c.buf = bufio.NewReaderSize(c, readBuffer)
	c.abort = c.stop
	return c
}

func (c *conn) begin(idle time.Duration, end time.Time) {
	c.idle = idle
	c.end = end
	c.written = 0
	c.read = 0
	c.readErr = nil
	c.limit = math.MaxInt64
	c.resting = false
	c.extended = false
	c.problem = ""
	c.extend()
}

// extend restarts the idle timeout, up to the deadline.
func (c *conn) extend() {
	now := time.Now()
	deadline := now.Add(c.idle)
	if !c.end.IsZero() && c.end.Before(deadline) {
		deadline = c.end
	}
	c.raw.SetDeadline(deadline)
	if c.closing.Load() {
		c.raw.SetWriteDeadline(now.Add(writeGrace))
	}
	if c.stopped.Load() {
		c.stop()
	}
}

// stop makes reads and writes fail forever. It is safe for concurrent use.
func (c *conn) stop() {
	c.stopped.Store(true)
	c.raw.SetDeadline(time.Unix(1, 0)) // in the past on any clock
}

// Read restarts the idle timeout if the previous read returned data.
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

// send writes out and then body. Each chunk counts as activity.
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

// alive reports whether an idle connection is still open, and has nothing to read.
func (c *conn) alive() bool { return c.peek == nil || c.peek.isQuiet() }

func (c *conn) close() { c.raw.Close() }

// peeker checks connections without blocking.
type peeker struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool
	one  [1]byte
	n    int
	err  error
}

// newPeeker returns nil for a closed connection.
func newPeeker(c syscall.Conn) *peeker {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	p := &peeker{raw: raw}
	p.look = func(fd uintptr) bool {
		p.n, p.err = syscall.Read(int(fd), p.one[:])
		return true
	}
	return p
}

// isQuiet reports whether there is nothing to read. If there is, a byte is lost, so the connection must be closed.
func (p *peeker) isQuiet() bool {
	return p.raw.Read(p.look) == nil && p.n <= 0 &&
		(errors.Is(p.err, syscall.EAGAIN) || errors.Is(p.err, syscall.EWOULDBLOCK))
}

// exchange sends the request once and reads the response, until ctx is done or the request's deadline passes.
func (c *conn) exchange(ctx context.Context, r *request) answer {
	p := r.protocol
	c.begin(p.idle, r.end)
	c.out = append(c.out[:0], r.head...)
	isFree := func() bool { return true }
	if ctx.Done() != nil {
		isFree = context.AfterFunc(ctx, c.abort)
	}

	var a answer
	if len(c.out)+len(r.body) > writeChunk {
		a = c.exchangeLong(r.body, p)
	} else if err := c.send(r.body); err != nil && c.written == 0 {
		a.err = err
	} else {
		// The app may have responded without reading everything. The connection is then not reusable.
		a = c.readAnswer(p, nil)
		a.keep = a.keep && err == nil
	}

	a.sent = c.written > 0
	a.problem = c.problem
	if c.extended {
		a.extended = c.idle
	}
	a.keep = isFree() && a.keep
	return a
}

func (c *conn) exchangeLong(body string, p *protocol) answer {
	w := &writer{conn: c, done: make(chan struct{})}
	go w.run(body)
	a := c.readAnswer(p, w)
	if a.head == nil {
		w.finish(false)
	}
	if c.written == 0 {
		// Nothing was sent, so whatever was read is not the response.
		return answer{err: w.err}
	}
	return a
}

type writer struct {
	conn *conn
	done chan struct{} // closed at the end
	err  error         // set before done is closed
}

func (w *writer) run(body string) {
	w.err = w.conn.send(body)
	switch {
	case w.err == nil:
		w.conn.extend()
	case w.conn.written == 0:
		w.conn.stop() // no response will come
	}
	close(w.done)
}

// finish waits until writing has ended, for a short time if wait is set, and reports whether the whole request was
// written.
func (w *writer) finish(wait bool) bool {
	if w == nil {
		return true
	}
	if wait {
		w.conn.closing.Store(true)
		w.conn.raw.SetWriteDeadline(time.Now().Add(writeGrace))
	} else {
		w.conn.stop()
	}
	<-w.done
	w.conn.closing.Store(false)
	return w.err == nil
}
