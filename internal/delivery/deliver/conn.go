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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tendril/internal/host/connpool"
)

const (
	writeGrace = 50 * time.Millisecond
	// Requests of more than writeChunk bytes are written in a separate goroutine, so that the app can respond early.
	writeChunk      = 32 << 10
	maxResponseHead = 64 << 10
	readBuffer      = 4 << 10
	// maxResponseBody is the maximum length in bytes of a response body that is read. After a longer one, the
	// connection is closed.
	maxResponseBody = 64 << 10
	failureRead     = 2 << 10
	// drainTime limits reading the body of an unsuccessful response, which allows an excerpt and reusing the
	// connection.
	drainTime = time.Second
)

// These replace errors of the parser, which would quote the response.
var (
	errHeadTooLong = errors.New("the response headers are longer than 64 KiB")
	errGarbled     = errors.New("the response is not HTTP")
)

// isLate reports whether a deadline of the exchange has passed, as opposed to a network timeout.
func isLate(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// isClosed includes resets: a peer that closes a connection with unread data resets it.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

type conn struct {
	*connpool.Peeker
	stream io.ReadWriteCloser
	raw    net.Conn
	buf    *bufio.Reader // reads through conn.Read
	out    []byte

	// Reused buffers.
	readBuf   []byte
	bodyStart []byte
	response  http.Response
	body      exactBody

	idle           time.Duration
	end            time.Time // zero if none
	written        int64     // bytes passed to the kernel
	read           int64
	limit          int64 // bytes that may still be read
	restartTimeout bool
	readErr        error
	stopped        atomic.Bool // reads and writes fail from now on
	closing        atomic.Bool // the response has arrived, so writing must end
	watch          *watch      // watches the context of the latest exchange; nil if that context cannot end

	extended bool
	problem  string // why an instruction was ignored, or ""
}

func newConn(raw net.Conn) *conn {
	c := &conn{raw: raw, stream: raw, Peeker: connpool.NewPeeker(raw)}
	c.buf = bufio.NewReaderSize(c, readBuffer)
	return c
}

func (c *conn) resetForExchange(idle time.Duration, end time.Time) {
	c.idle = idle
	c.end = end
	c.written = 0
	c.read = 0
	c.readErr = nil
	c.limit = math.MaxInt64
	c.restartTimeout = false
	c.extended = false
	c.problem = ""
	c.renewDeadline()
}

func (c *conn) renewDeadline() {
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

// stop makes further reads and writes fail. It is safe for concurrent use.
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
	if c.restartTimeout {
		c.renewDeadline()
	}

	n, err := c.stream.Read(p)
	c.read += int64(n)
	c.limit -= int64(n)
	c.restartTimeout = n > 0
	if err != nil {
		c.readErr = err
	}

	return n, err
}

// send writes c.out and body. Each written chunk counts as activity.
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
		c.renewDeadline()
	}
}

func (c *conn) Close() error {
	c.watch.end()
	return c.raw.Close()
}

// watch aborts exchanges when their context is done. It is kept between exchanges, because deliveries share a context,
// and each registration needs its lock.
type watch struct {
	conn       *conn
	done       <-chan struct{}
	unregister func() bool

	mu         sync.Mutex
	exchanging bool
}

// startWatch returns nil if the context cannot end.
func (c *conn) startWatch(ctx context.Context) *watch {
	done := ctx.Done()
	if c.watch == nil || c.watch.done != done {
		c.watch.end()
		c.watch = nil
		if done == nil {
			return nil
		}
		c.watch = &watch{conn: c, done: done}
		c.watch.unregister = context.AfterFunc(ctx, c.watch.abort)
	}

	c.watch.set(true)
	if ctx.Err() != nil {
		c.stop() // abort may have been called before
	}
	return c.watch
}

func (w *watch) set(exchanging bool) {
	if w != nil {
		w.mu.Lock()
		w.exchanging = exchanging
		w.mu.Unlock()
	}
}

// abort stops the exchange in progress. Between exchanges, the connection stays usable.
func (w *watch) abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.exchanging {
		w.conn.stop()
	}
}

func (w *watch) end() {
	if w != nil {
		w.unregister()
	}
}

func (c *conn) exchange(ctx context.Context, r *request) response {
	c.resetForExchange(r.protocol.idle, r.end)
	c.out = append(c.out[:0], r.head...)
	watched := c.startWatch(ctx)

	var res response
	if len(c.out)+len(r.body) > writeChunk {
		res = c.exchangeLong(r.body, r.protocol)
	} else {
		res = c.exchangeShort(r.body, r.protocol)
	}
	res.conn = c
	res.sent = c.written > 0
	res.problem = c.problem
	if c.extended {
		res.extended = c.idle
	}

	watched.set(false)
	res.reusable = res.reusable && ctx.Err() == nil
	return res
}

// exchangeShort writes the whole request before it reads. After a failed write, there may still be a response.
func (c *conn) exchangeShort(body string, p *protocol) response {
	err := c.send(body)
	if err != nil && c.written == 0 {
		return response{err: err}
	}
	res := c.readResponse(p, nil)
	res.reusable = res.reusable && err == nil
	return res
}

func (c *conn) exchangeLong(body string, p *protocol) response {
	w := &writer{conn: c, done: make(chan struct{})}
	go w.run(body)
	res := c.readResponse(p, w)
	if res.head == nil {
		w.abort()
	}
	if c.written == 0 {
		// Nothing was sent, so no data that was read is the response.
		return response{err: w.err}
	}
	return res
}

type writer struct {
	conn *conn
	done chan struct{}
	err  error // set before done is closed
}

func (w *writer) run(body string) {
	w.err = w.conn.send(body)
	switch {
	case w.err == nil:
		w.conn.renewDeadline()
	case w.conn.written == 0:
		w.conn.stop()
	}
	close(w.done)
}

// finish waits up to writeGrace, and reports whether the whole request was written. w may be nil.
func (w *writer) finish() bool {
	if w == nil {
		return true
	}
	w.conn.closing.Store(true)
	w.conn.raw.SetWriteDeadline(time.Now().Add(writeGrace))
	<-w.done
	w.conn.closing.Store(false)
	return w.err == nil
}

func (w *writer) abort() {
	if w != nil {
		w.conn.stop()
		<-w.done
	}
}
