package deliver

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"tendril/internal/host/connpool"
)

type protocol struct {
	idle    time.Duration
	success StatusSet // bodies of these statuses must be complete
	maxBody int       // bytes of a success body to read
	keep    int       // bytes to keep of any body
	headers bool
}

type answer struct {
	head     *http.Response // nil if no headers were read
	first    []byte         // start of the body; valid until the next exchange
	sent     bool           // at least one byte may have reached the app
	started  bool
	success  bool
	broken   bool // a success with an incomplete body
	whole    bool
	wanted   steering
	problem  string        // why an instruction was ignored, or ""
	extended time.Duration // inactivity timeout chosen by the app
	err      error         // why head is nil or the body incomplete
	keep     bool          // conn is reusable
	conn     *conn
	pool     *connpool.Pool[*conn]
}

// readAnswer reads the final response. On failure, the caller must finish w.
func (c *conn) readAnswer(p *protocol, w *writer) answer {
	head, err := c.readHead(p)
	if err != nil {
		return answer{started: c.read > 0, err: err}
	}
	a := answer{head: head, started: true, success: p.success.Has(head.StatusCode)}
	if values := head.Header[outcomeHeader]; values != nil {
		a.wanted = c.applyOutcome(values, true, a.success)
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
		a.wanted = c.applyOutcome(values, true, false)
	}

	// Extra bytes could be mistaken for the response to the next request.
	a.whole = whole
	a.keep = written && whole && !head.Close && head.StatusCode != http.StatusSwitchingProtocols && c.buf.Buffered() == 0
	return a
}

// readHead returns the final response. Informational ones count as activity and may carry instructions.
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
			c.applyOutcome(values, false, false)
		}
	}
}

// readBody keeps the first keep bytes. It returns an error if the body is incomplete.
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

// takePlainHead parses most success responses faster than net/http, or returns nil.
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

const maxPlainHeaders = 16

// parsePlainHead accepts only headers that are known to be irrelevant. Otherwise, size is 0.
func parsePlainHead(text []byte) (status int, length int64, size int) {
	line, rest, ok := bytes.Cut(text, crlf)
	if !ok {
		return 0, 0, 0
	}
	if status = parsePlainStatus(line); status == 0 {
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

func parsePlainStatus(line []byte) int {
	const version = "HTTP/1.1 "
	if len(line) < len(version)+4 || string(line[:len(version)]) != version || line[len(version)+3] != ' ' ||
		!isPlainValue(line) {
		return 0
	}

	switch string(line[len(version) : len(version)+3]) {
	case "200":
		return http.StatusOK
	case "201":
		return http.StatusCreated
	case "202":
		return http.StatusAccepted
	}
	return 0
}

var crlf, colonSpace = []byte("\r\n"), []byte(": ")

func isPlainValue(text []byte) bool {
	for _, b := range text {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return len(text) > 0 && text[len(text)-1] != ' '
}

type exactBody struct {
	conn *conn
	left int64
}

// Read returns [io.ErrUnexpectedEOF] if the body is incomplete.
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

func (b *exactBody) Close() error { return nil }
