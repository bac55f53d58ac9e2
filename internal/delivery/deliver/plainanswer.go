package deliver

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

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

// Close does nothing: whoever reads the body knows what is to become of the connection.
func (b *exactBody) Close() error { return nil }
