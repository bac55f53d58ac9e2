package sqsapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tendril/queue"
)

const (
	jsonType  = "application/x-amz-json-1.0"
	sqsPrefix = "AmazonSQS."
)

// serveJSON answers a request of the AWS JSON 1.0 protocol.
func (x *exchange) serveJSON(target string) {
	act, known := x.h.actions[target]
	if !known {
		x.fail(queue.Errorf(codeUnknownOperation, "The operation %s is not served by this endpoint.", quote(target)))
		return
	}
	if x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", http.MethodPost)
		x.fail(queue.Errorf(codeMethodNotAllowed, "The operation %s takes the method POST, not %s.", target,
			quote(x.r.Method)))
		return
	}
	_, x.action, _ = strings.Cut(target, ".")
	in := x.h.buffer()
	defer x.h.release(in)
	request := act.request()
	err := x.readBody(in)
	if err == nil {
		err = x.authenticate(in.Bytes())
	}
	if err == nil {
		err = decodeJSON(in.Bytes(), request)
	}
	if err != nil {
		x.fail(err)
		return
	}
	x.run(act, request, in)
}

// appender is a response with an encoder of its own, for the ones where the
// standard encoder costs too much.
type appender interface{ appendJSON(dst []byte) []byte }

// encodeJSON appends a response, nothing for an action without output.
func encodeJSON(dst []byte, response any) ([]byte, error) {
	switch r := response.(type) {
	case nil:
		return dst, nil
	case appender:
		return r.appendJSON(dst), nil
	}
	out := bytes.NewBuffer(dst)
	err := json.MarshalWrite(out, response, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return out.Bytes(), err
}

// trusted is how much of a body arrives before its announced length is believed: the length is a
// claim, and a large buffer is for what arrived. It is more than the server reads without asking
// for room (package httplimit), so that a buffer is made when there is room for it.
const trusted = 64<<10 + bytes.MinRead

// readBody reads the request's body up to [MaxBody].
func (x *exchange) readBody(in *bytes.Buffer) error {
	in.Reset()
	if x.r.ContentLength > MaxBody {
		x.w.Header().Set("Connection", "close")
		return tooLarge()
	}
	body := http.MaxBytesReader(x.w, x.r.Body, MaxBody)
	_, err := in.ReadFrom(io.LimitReader(body, trusted))
	if err == nil && in.Len() == trusted {
		in.Grow(max(0, int(x.r.ContentLength)-trusted) + bytes.MinRead)
		_, err = in.ReadFrom(body)
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge()
	case asQueueError(err) != nil:
		x.w.Header().Set("Connection", "close")
		return err
	case err != nil:
		return queue.Errorf(codeSerialization, "The request's body could not be read to its end.")
	}
	return nil
}

func tooLarge() error {
	return queue.Errorf(codeTooLarge,
		"The request's body is larger than %d bytes, the most that a legal request can need.", MaxBody)
}

// quote returns untrusted text fit for an error message.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.QuoteToASCII(s)
}
