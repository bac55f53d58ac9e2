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
	// maxAnswerBody is how many bytes of an answer's body are read. The connection of a
	// longer answer is closed.
	maxAnswerBody = 64 << 10
	// answerRead is how many bytes of an answer that is not a success are kept.
	answerRead = 2 << 10
	// drainTime is how long the body of an answer that is not a success may take:
	// its status has decided already.
	drainTime = time.Second
)

// Ends of an exchange. The parser of answers quotes lines of them, so its own words stay inside.
var (
	errHeadTooLong = errors.New("the answer's headers are longer than 64 KiB")
	errGarbled     = errors.New("the answer is not HTTP")
)

// isLate reports whether one of the exchange's own bounds ended it, rather than
// the network's patience.
func isLate(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// isTimeout reports whether anybody's patience ended.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// isClosed reports whether err is what a closed connection gives; a reset is
// the close of a peer that had not read everything.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// conn is one connection to the app. It carries one exchange at a time and is
// the only place that knows how many bytes of a request went out, and when the
// app last gave a sign of life.
type conn struct {
	stream io.ReadWriteCloser // raw, or TLS over it
	raw    net.Conn
	buf    *bufio.Reader // reads through conn.Read
	peek   *peeker       // nil where the system cannot look without waiting
	out    []byte        // the request's head, then each part of its body

	// Memory for answers, used again by the next one:
	scrap    []byte        // the body
	first    []byte        // its start, as far as it is kept
	response http.Response // the head of an answer that needs no parser
	body     exactBody     // the body of such an answer

	idleSince time.Time // when the last exchange ended

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

	// What the app said about it, besides the outcome:
	extended bool   // it chose how long it may be silent
	problem  string // why something is ignored; "" if nothing is
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

// begin readies the connection for one exchange.
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

// extend gives the app another idle time, though not beyond the end.
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

// stop makes every read and write, also those to come, fail at once. It may be
// called from any goroutine, also after the exchange.
func (c *conn) stop() {
	c.stopped.Store(true)
	c.raw.SetDeadline(time.Unix(1, 0)) // passed on any clock
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

// alive reports whether an unused connection may carry another request: the app has
// neither closed it nor said anything unasked.
func (c *conn) alive() bool { return c.peek == nil || c.peek.isQuiet() }

func (c *conn) close() { c.raw.Close() }

// peeker looks, without waiting, whether a connection that should be silent is.
type peeker struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool
	one  [1]byte
	n    int
	err  error
}

// newPeeker returns nil for a connection that is closed.
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

// isQuiet reports whether nothing can be read: no byte, no end, no error. A byte that is
// there is lost, so that the connection must be closed.
func (p *peeker) isQuiet() bool {
	return p.raw.Read(p.look) == nil && p.n <= 0 &&
		(errors.Is(p.err, syscall.EAGAIN) || errors.Is(p.err, syscall.EWOULDBLOCK))
}

// exchange sends the request and reads the answer, once. It blocks for as long as the app gives signs of life, until
// ctx ends or until the request's end.
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
		// The app may have answered and closed before it took everything, but no further
		// request fits behind half a one.
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
		// Whatever was read is no answer to this.
		return answer{err: w.err}
	}
	return a
}

// writer is a request that goes out while its answer is awaited.
type writer struct {
	conn *conn
	done chan struct{} // closed at the end
	err  error         // why not all went out; set before done is closed
}

func (w *writer) run(body string) {
	w.err = w.conn.send(body)
	switch {
	case w.err == nil:
		w.conn.extend()
	case w.conn.written == 0:
		w.conn.stop() // there is no answer to wait for
	}
	close(w.done)
}

// finish waits until nothing is written any more: for the rest of the request
// if wait is set and that goes out soon, or at once. It reports whether all of
// the request went out. A nil writer has.
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
