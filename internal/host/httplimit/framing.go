package httplimit

import (
	"bytes"
	"net/http"
	"strconv"
	"sync/atomic"
)

const longestLine = 64

// framing reads request headers to find lengths that proxies may read differently (RFC 9112, section 6.1), which
// net/http hides from handlers. It stops at the first request with folded lines or Transfer-Encoding, which must be the
// last one on the connection.
type framing struct {
	last atomic.Int64 // number of the request at which framing stopped, from 1; 0 if it has not

	requests int64
	body     uint64
	line     []byte
	head     requestHead
}

type requestHead struct {
	started                bool
	folded, sized, encoded bool // folded is also true if the line of Content-Length does not fit into longestLine
	length                 uint64
}

func (f *framing) isAmbiguous(number int64, r *http.Request) bool {
	return number == f.last.Load() && (f.head.folded || f.head.sized || !r.ProtoAtLeast(1, 1))
}

func (f *framing) follow(p []byte) {
	for len(p) > 0 && f.last.Load() == 0 {
		if f.body > 0 {
			arrived := min(f.body, uint64(len(p)))
			f.body -= arrived
			p = p[arrived:]
			continue
		}

		line, rest, complete := bytes.Cut(p, []byte{'\n'})
		if !complete || len(f.line) > 0 {
			f.line = append(f.line, line[:min(len(line), longestLine-len(f.line))]...)
			line = f.line
		}
		if complete {
			f.readLine(bytes.TrimSuffix(line, []byte{'\r'}))
			f.line = f.line[:0]
		}
		p = rest
	}
}

func (f *framing) readLine(line []byte) {
	head := &f.head
	switch {
	case len(line) == 0:
		f.endHeader()
	case !head.started:
		head.started = true
	case line[0] == ' ' || line[0] == '\t':
		head.folded = true
	case isField(line, "Content-Length:"):
		head.sized = true
		head.folded = head.folded || len(line) >= longestLine
		value := bytes.TrimSpace(line[len("Content-Length:"):])
		head.length, _ = strconv.ParseUint(string(value), 10, 63) // the server rejects invalid numbers
	case isField(line, "Transfer-Encoding:"):
		head.encoded = true
	}
}

func isField(line []byte, name string) bool {
	return len(line) >= len(name) && bytes.EqualFold(line[:len(name)], []byte(name))
}

func (f *framing) endHeader() {
	head := f.head
	if !head.started {
		return
	}
	f.requests++
	if head.folded || head.encoded {
		f.last.Store(f.requests)
		return
	}
	f.body = head.length
	f.head = requestHead{}
}
