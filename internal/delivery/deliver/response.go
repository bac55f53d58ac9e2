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

type protocol struct {
	idle        time.Duration
	success     StatusSet // bodies of these statuses must be complete
	maxBody     int       // bytes of a success body to read
	keepBytes   int       // bytes to keep of any body
	needHeaders bool
}

type response struct {
	head          *http.Response // nil if no headers were read
	bodyStart     []byte         // valid until the next exchange
	sent          bool           // bytes may have reached the app
	started       bool
	success       bool
	successCutOff bool // the body of a success is incomplete
	bodyComplete  bool
	instruction   instruction
	problem       string        // why an instruction was ignored, or ""
	extended      time.Duration // inactivity timeout chosen by the app
	err           error         // why head is nil or the body incomplete
	reusable      bool          // conn can be kept
	conn          *conn
}

// readResponse leaves w running if it returns no head; the caller must then end it.
func (c *conn) readResponse(p *protocol, w *writer) response {
	head, err := c.readHead(p)
	if err != nil {
		return response{started: c.read > 0, err: err}
	}

	res := response{head: head, started: true, success: p.success.Has(head.StatusCode)}
	if values := head.Header[outcomeHeader]; values != nil {
		place := inFailure
		if res.success {
			place = inSuccess
		}
		res.instruction = c.applyOutcome(values, place)
	}

	var written bool
	if res.success || res.instruction.verb == verbDrop {
		written = c.readWholeBody(&res, p, w)
	} else {
		written = c.drainBody(&res, p, w)
	}

	if values := head.Trailer[outcomeHeader]; values != nil && res.bodyComplete {
		res.instruction = c.applyOutcome(values, inTrailer)
	}

	// Extra bytes could be mistaken for the next response.
	res.reusable = written && res.bodyComplete && !head.Close && head.StatusCode != http.StatusSwitchingProtocols &&
		c.buf.Buffered() == 0
	return res
}

// readWholeBody reports whether the whole request was written.
func (c *conn) readWholeBody(res *response, p *protocol, w *writer) (written bool) {
	res.bodyComplete, res.err = c.readBody(res.head.Body, p.maxBody, p.keepBytes)
	res.bodyStart = c.bodyStart
	res.successCutOff = res.err != nil
	if !res.bodyComplete {
		w.abort()
		return false
	}
	return w.finish()
}

// drainBody reads the body of an unsuccessful response for up to drainTime. If the request was not completely
// written, it reads nothing and returns false.
func (c *conn) drainBody(res *response, p *protocol, w *writer) (written bool) {
	if !w.finish() {
		return false
	}
	if end := time.Now().Add(drainTime); c.end.IsZero() || end.Before(c.end) {
		c.end = end
	}
	c.restartTimeout = true
	res.bodyComplete, _ = c.readBody(res.head.Body, p.maxBody, max(p.keepBytes, failureRead))
	res.bodyStart = c.bodyStart
	return true
}

// readHead skips informational responses, which count as activity and may carry instructions.
func (c *conn) readHead(p *protocol) (*http.Response, error) {
	for {
		c.limit = maxResponseHead
		c.read = int64(c.buf.Buffered())
		if _, err := c.buf.Peek(1); err != nil {
			return nil, cmp.Or(c.readErr, errGarbled)
		}
		if head := c.readPlainHead(p); head != nil {
			c.limit = math.MaxInt64
			return head, nil
		}

		head, err := http.ReadResponse(c.buf, nil)
		if err != nil {
			return nil, cmp.Or(c.readErr, errGarbled)
		}
		if !isInformational(head.StatusCode) {
			c.limit = math.MaxInt64
			return head, nil
		}
		if values := head.Header[outcomeHeader]; values != nil {
			c.applyOutcome(values, inInformational)
		}
	}
}

// isInformational excludes status 101, a final response.
func isInformational(status int) bool {
	return status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
}

// readBody keeps the first keep bytes in bodyStart. complete is false for bodies of more than maxBody bytes; the rest
// is not read. It returns an error if the body is cut off earlier.
func (c *conn) readBody(body io.Reader, maxBody, keep int) (complete bool, err error) {
	c.bodyStart = c.bodyStart[:0]
	if body == http.NoBody {
		return true, nil
	}
	if c.readBuf == nil {
		c.readBuf = make([]byte, readBuffer)
	}

	for n := 0; n <= maxBody; {
		k, err := body.Read(c.readBuf)
		n += k
		c.bodyStart = append(c.bodyStart, c.readBuf[:min(k, keep-len(c.bodyStart))]...)
		switch {
		case err == io.EOF:
			return n <= maxBody, nil
		case err != nil:
			return false, cmp.Or(c.readErr, errGarbled)
		}
	}

	return false, nil
}

// readPlainHead parses most success responses, faster than net/http. It returns nil for others.
func (c *conn) readPlainHead(p *protocol) *http.Response {
	if p.needHeaders {
		return nil
	}
	text, _ := c.buf.Peek(c.buf.Buffered())
	head, ok := parsePlainHead(text)
	if !ok || !p.success.Has(head.status) {
		return nil
	}

	c.buf.Discard(head.size)
	c.response = http.Response{StatusCode: head.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: head.length, Body: http.NoBody}
	if head.length > 0 {
		c.body = exactBody{c, head.length}
		c.response.Body = &c.body
	}
	return &c.response
}

const maxPlainHeaders = 16

type plainHead struct {
	status int
	length int64 // of the body; -1 if unknown
	size   int
}

// parsePlainHead accepts only headers that do not matter here, besides Content-Length.
func parsePlainHead(text []byte) (head plainHead, ok bool) {
	line, rest, found := bytes.Cut(text, crlf)
	if !found {
		return head, false
	}
	head = plainHead{status: parsePlainStatus(line), length: -1}
	if head.status == 0 {
		return head, false
	}

	for range maxPlainHeaders {
		line, rest, found = bytes.Cut(rest, crlf)
		if !found {
			return head, false
		}
		if len(line) == 0 {
			head.size = len(text) - len(rest)
			return head, head.length >= 0
		}
		if !head.acceptHeader(line) {
			return head, false
		}
	}
	return head, false
}

func (h *plainHead) acceptHeader(line []byte) bool {
	name, value, found := bytes.Cut(line, colonSpace)
	if !found || !isPlainValue(value) {
		return false
	}
	switch string(name) {
	case "Content-Length", "content-length":
		n, err := strconv.ParseUint(string(value), 10, 62)
		if err != nil || h.length >= 0 {
			return false
		}
		h.length = int64(n)
		return true
	case "Connection", "connection":
		return string(value) == "keep-alive" || string(value) == "Keep-Alive"
	case "Date", "Content-Type", "Server", "Keep-Alive", "X-Powered-By", "ETag", "Vary", "Cache-Control",
		"X-Content-Type-Options", "X-Request-Id", "X-Runtime",
		"date", "content-type", "server", "keep-alive", "x-powered-by", "etag", "vary", "cache-control":
		return true
	}
	return false
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
	conn      *conn
	remaining int64
}

// Read returns [io.ErrUnexpectedEOF] for an incomplete body.
func (b *exactBody) Read(p []byte) (int, error) {
	n, err := b.conn.buf.Read(p[:min(int64(len(p)), b.remaining)])
	b.remaining -= int64(n)
	switch {
	case b.remaining == 0:
		return n, io.EOF
	case err == io.EOF:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *exactBody) Close() error { return nil }
