package deliver

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// protocol is what an exchange needs to know of the settings.
type protocol struct {
	idle    time.Duration // the longest silence
	success StatusSet     // whose body must arrive whole
	maxBody int           // bytes of it that are read
	keep    int           // bytes of any answer's body that are kept
	headers bool          // all headers of an answer are wanted
}

// answer is the result of one exchange.
type answer struct {
	head     *http.Response // nil when none was read
	first    []byte         // the start of its body where it is kept; good until the next exchange
	sent     bool           // a byte of the request may have reached the app
	started  bool           // a byte of the answer was read
	success  bool           // head has a success code
	broken   bool           // its body did not arrive whole
	whole    bool           // all of it was read
	wanted   steering       // what the app says about the outcome
	problem  string         // why a part of that is ignored
	extended time.Duration  // how long it may be silent, where it chose that
	err      error          // why there is no head, or a broken body
	keep     bool           // the connection may carry another exchange
	conn     *conn          // the connection that it was read from
	pool     *pool          // where that goes
}

// readAnswer reads the final answer and, within bounds, its body. It leaves w
// unfinished if there is no answer.
func (c *conn) readAnswer(p *protocol, w *writer) answer {
	head, err := c.readHead(p)
	if err != nil {
		return answer{started: c.read > 0, err: err}
	}
	a := answer{head: head, started: true, success: p.success.Has(head.StatusCode)}
	if values := head.Header[outcomeHeader]; values != nil {
		a.wanted = c.obey(values, true, a.success)
	}

	var whole, written bool
	if a.success || a.wanted.wish == wishDrop {
		whole, a.err = c.readBody(head.Body, p.maxBody, p.keep)
		a.broken, a.first = a.err != nil, c.first
		written = w.finish(whole)
	} else if written = w.finish(true); written {
		if end := time.Now().Add(drainTime); c.end.IsZero() || end.Before(c.end) {
			c.end = end
		}
		c.resting = true
		whole, _ = c.readBody(head.Body, p.maxBody, max(p.keep, answerRead))
		a.first = c.first
	}

	if values := head.Trailer[outcomeHeader]; values != nil && whole {
		a.wanted = c.obey(values, true, false)
	}

	// Bytes beyond the answer could be taken for the answer to the next request.
	a.whole = whole
	a.keep = written && whole && !head.Close && head.StatusCode != http.StatusSwitchingProtocols && c.buf.Buffered() == 0
	return a
}

// readHead reads up to the final answer's headers. Informational answers before it
// are signs of life and no more.
func (c *conn) readHead(p *protocol) (*http.Response, error) {
	for {
		c.limit = maxAnswerHead
		c.read = int64(c.buf.Buffered())
		if _, err := c.buf.Peek(1); err != nil {
			return nil, cmp.Or(c.readErr, errGarbled)
		}

		if head := c.takePlainHead(p); head != nil {
			c.limit = math.MaxInt64
			return head, nil
		}

		head, err := http.ReadResponse(c.buf, nil)
		if err != nil {
			return nil, cmp.Or(c.readErr, errGarbled)
		}
		if head.StatusCode >= 200 || head.StatusCode < 100 || head.StatusCode == http.StatusSwitchingProtocols {
			c.limit = math.MaxInt64
			return head, nil
		}

		if values := head.Header[outcomeHeader]; values != nil {
			c.obey(values, false, false)
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
			return false, cmp.Or(c.readErr, errGarbled)
		}
	}
	return false, nil
}

// takePlainHead takes the head of an answer off the buffer if it is a success, says nothing about the message beyond
// that, states its length, and is all there. It returns nil for any other, which is left to the parser: nearly all
// answers of an app need none.
func (c *conn) takePlainHead(p *protocol) *http.Response {
	if p.headers {
		return nil
	}
	text, _ := c.buf.Peek(c.buf.Buffered())
	status, length, size := parsePlainHead(text)
	if size == 0 || !p.success.Has(status) {
		return nil
	}
	c.buf.Discard(size)
	c.response = http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: length,
		Body: http.NoBody}
	if length > 0 {
		c.body = exactBody{c, length}
		c.response.Body = &c.body
	}
	return &c.response
}

// maxPlainHeaders is how many headers a plain answer has at most.
const maxPlainHeaders = 16

// parsePlainHead returns the status of an answer, the length of its body and the size of its head. The size is 0 for
// an answer that is not plain: of another version or kind, or with a header that is not known to mean nothing here.
func parsePlainHead(text []byte) (status int, length int64, size int) {
	const version = "HTTP/1.1 "
	line, rest, ok := bytes.Cut(text, crlf)
	if !ok || len(line) < len(version)+4 || string(line[:len(version)]) != version || line[len(version)+3] != ' ' ||
		!isPlainValue(line) {
		return 0, 0, 0
	}

	switch string(line[len(version) : len(version)+3]) {
	case "200":
		status = http.StatusOK
	case "201":
		status = http.StatusCreated
	case "202":
		status = http.StatusAccepted
	default:
		return 0, 0, 0
	}

	length = -1
	for range maxPlainHeaders {
		if line, rest, ok = bytes.Cut(rest, crlf); !ok {
			return 0, 0, 0
		}
		if len(line) == 0 {
			if length < 0 {
				return 0, 0, 0
			}
			return status, length, len(text) - len(rest)
		}

		name, value, found := bytes.Cut(line, colonSpace)
		if !found || !isPlainValue(value) {
			return 0, 0, 0
		}
		switch string(name) {
		case "Content-Length", "content-length":
			n, err := strconv.ParseUint(string(value), 10, 62)
			if err != nil || length >= 0 {
				return 0, 0, 0
			}
			length = int64(n)
		case "Connection", "connection":
			if s := string(value); s != "keep-alive" && s != "Keep-Alive" {
				return 0, 0, 0
			}
		case "Date", "Content-Type", "Server", "Keep-Alive", "X-Powered-By", "ETag", "Vary", "Cache-Control",
			"X-Content-Type-Options", "X-Request-Id", "X-Runtime",
			"date", "content-type", "server", "keep-alive", "x-powered-by", "etag", "vary", "cache-control":
		default:
			return 0, 0, 0
		}
	}
	return 0, 0, 0
}

var crlf, colonSpace = []byte("\r\n"), []byte(": ")

// isPlainValue reports whether a text is printable ASCII and does not end with a space.
func isPlainValue(text []byte) bool {
	for _, b := range text {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return len(text) > 0 && text[len(text)-1] != ' '
}

// exactBody reads the body of a plain answer.
type exactBody struct {
	conn *conn
	left int64
}

// Read returns [io.ErrUnexpectedEOF] if the connection ends before the body does.
func (b *exactBody) Read(p []byte) (int, error) {
	n, err := b.conn.buf.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case b.left == 0:
		return n, io.EOF
	case err == io.EOF:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// Close does nothing: the reader of the body decides about the connection.
func (b *exactBody) Close() error { return nil }
