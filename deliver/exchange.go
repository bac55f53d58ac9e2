package deliver

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"time"
)

const (
	// maxAnswerBody is how many bytes of an answer's body are read. The connection of a
	// longer answer is closed.
	maxAnswerBody = 64 << 10
	// drainTime is how long the body of an answer that is no success may take:
	// its status has decided already.
	drainTime = time.Second
)

// answer is what became of one exchange.
type answer struct {
	head    *http.Response // nil when none was read
	first   []byte         // the begin of its body where it is no success; good until the next exchange
	sent    bool           // a byte of the request may have reached the app
	started bool           // a byte of the answer was read
	success bool           // head has a success code
	broken  bool           // its body did not arrive whole
	err     error          // why there is no head, or a broken body
	keep    bool           // the connection may carry another exchange
}

// exchange sends the request whose head is in c.out and reads the answer, once.
// It blocks for as long as the app gives signs of life, until ctx ends or until
// end.
func (c *conn) exchange(ctx context.Context, body string, p *protocol, end time.Time) answer {
	c.begin(p.idle, end)
	free := c.watch(ctx)
	var a answer
	if len(c.out)+len(body) <= writeChunk {
		a = c.exchangeShort(body, p)
	} else {
		a = c.exchangeLong(body, p)
	}
	a.sent = c.written > 0
	a.keep = free() && a.keep
	return a
}

// protocol is what an exchange needs to know of the settings.
type protocol struct {
	idle    time.Duration // the longest silence
	success StatusSet     // whose body must arrive whole
	maxBody int           // bytes of it that are read
}

func (c *conn) exchangeShort(body string, p *protocol) answer {
	err := c.send(body)
	if err != nil && c.written == 0 {
		return answer{err: err}
	}
	a := c.readAnswer(p, nil)
	if err != nil {
		// The app may have answered and closed before it took everything, but no
		// further request fits behind half a one.
		a.keep = false
	}
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

// readAnswer reads the final answer and, within bounds, its body. It leaves w
// unfinished if there is no answer.
func (c *conn) readAnswer(p *protocol, w *writer) answer {
	head, err := c.readHead()
	if err != nil {
		return answer{started: c.read > 0, err: err}
	}
	a := answer{head: head, started: true, success: p.success.Has(head.StatusCode)}
	var whole, written bool
	if a.success {
		whole, a.err = c.readBody(head.Body, p.maxBody, 0)
		a.broken = a.err != nil
		written = w.finish(whole)
	} else if written = w.finish(true); written {
		c.hurry(drainTime)
		whole, _ = c.readBody(head.Body, p.maxBody, answerRead)
		a.first = c.first
	}
	// Bytes beyond the answer could be taken for the answer to the next request.
	a.keep = written && whole && !head.Close && head.StatusCode != http.StatusSwitchingProtocols && c.buf.Buffered() == 0
	return a
}

// readHead reads up to the final answer's headers. Informational answers before it
// are signs of life and no more.
func (c *conn) readHead() (*http.Response, error) {
	for {
		c.limit = maxAnswerHead
		c.read = int64(c.buf.Buffered())
		head, err := http.ReadResponse(c.buf, nil)
		if err != nil {
			return nil, c.cause(err)
		}
		if head.StatusCode >= 200 || head.StatusCode < 100 || head.StatusCode == http.StatusSwitchingProtocols {
			c.limit = math.MaxInt64
			return head, nil
		}
	}
}

// readBody reads at most maxBody bytes, keeps the first ones, and reports whether
// that was the whole body. An error means that it broke off before.
func (c *conn) readBody(body io.Reader, maxBody, keep int) (whole bool, err error) {
	c.first = c.first[:0]
	if body == http.NoBody {
		return true, nil
	}
	if c.scrap == nil {
		c.scrap = make([]byte, readBuffer)
	}
	for n := 0; n <= maxBody; {
		k, err := body.Read(c.scrap)
		n += k
		c.first = append(c.first, c.scrap[:min(k, keep-len(c.first))]...)
		switch {
		case err == io.EOF:
			return n <= maxBody, nil
		case err != nil:
			return false, c.cause(err)
		}
	}
	return false, nil
}

// hurry brings the end of the exchange nearer.
func (c *conn) hurry(most time.Duration) {
	if end := time.Now().Add(most); c.end.IsZero() || end.Before(c.end) {
		c.end = end
	}
	c.resting = true
}

// cause returns how the stream ended where that is what err came from, which is
// what the parser of answers made of it.
func (c *conn) cause(err error) error {
	if c.readErr != nil {
		return c.readErr
	}
	return &garbledError{err}
}

// garbledError is an answer that is not HTTP.
type garbledError struct{ err error }

// Error says what was wrong with it. The parser quotes lines of the answer, so
// its words stay inside.
func (e *garbledError) Error() string { return "the answer is not HTTP" }

// isGarbled reports whether err is a [garbledError].
func isGarbled(err error) bool {
	var g *garbledError
	return errors.As(err, &g)
}
