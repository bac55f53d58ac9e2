package sqsapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tendril/queue"
	"tendril/sqswire"
)

const (
	jsonType  = "application/x-amz-json-1.0"
	sqsPrefix = "AmazonSQS."
)

// serveJSON answers a request of the AWS JSON 1.0 protocol.
func (x *exchange) serveJSON(target string) {
	name, action, err := x.h.actionOf(x.r.Method, target)
	if err != nil {
		x.failJSON(err)
		return
	}
	x.action = name
	in := x.h.buffers.Get().(*buffer)
	defer x.h.release(in)
	request := action.request()
	if err := x.decodeBody(in, request); err != nil {
		x.failJSON(err)
		return
	}
	response, err := action.run(x.call(), request)
	if x.gone(err) {
		return
	}
	if err != nil {
		x.failJSON(err)
		return
	}
	// The request's strings are copies: its buffer may take the response.
	if in.bytes, err = encodeJSON(in.bytes[:0], response); err != nil {
		x.failJSON(err)
		return
	}
	x.succeedJSON(in.bytes, response)
}

// actionOf finds the action that a target header names.
func (h *Handler) actionOf(method, target string) (string, action, error) {
	act, known := h.actions[target]
	switch {
	case !known:
		return "", action{}, queue.Errorf(codeUnknownOperation,
			"The operation %s is not served by this endpoint.", quote(target))
	case method != http.MethodPost:
		return "", action{}, queue.Errorf(codeMethodNotAllowed,
			"The operation %s takes the method POST, not %s.", target, quote(method))
	}
	return target[strings.IndexByte(target, '.')+1:], act, nil
}

func (x *exchange) decodeBody(in *buffer, request any) error {
	if err := in.fill(x.w, x.r); err != nil {
		return err
	}
	return decodeJSON(in.bytes, request)
}

func (x *exchange) succeedJSON(body []byte, response any) {
	var report Answer
	if c, ok := response.(counter); ok {
		report.Messages = c.messages()
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.answer(http.StatusOK, jsonType, body, report)
}

// failJSON answers an error. What is no refusal stays inside: the client
// learns that something failed, and the listener learns what.
func (x *exchange) failJSON(err error) {
	refusal := asQueueError(err)
	var report Answer
	if refusal == nil {
		refusal = queue.Errorf(codeInternal, "The request failed inside the server. Its request id is %s.", x.id)
	}
	report.Code = refusal.Code
	f := faultOf(refusal.Code)
	if !f.sender() {
		report.Err = err
	}
	if f.status == http.StatusMethodNotAllowed {
		x.w.Header().Set("Allow", http.MethodPost)
	}
	x.w.Header().Set("X-Amzn-Query-Error", f.query+";"+f.side())
	body := append([]byte(`{"__type":"com.amazonaws.sqs#`), refusal.Code...)
	body = append(body, `","message":`...)
	body = sqswire.AppendString(body, textOf(refusal))
	body = append(body, '}')
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.answer(f.status, jsonType, body, report)
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
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(response); err != nil {
		return dst, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// buffer holds a request's body, then the response's.
type buffer struct{ bytes []byte }

// keptBuffer is the largest buffer kept for the next request: larger ones are
// rare and would stay forever.
const keptBuffer = 256 << 10

func (h *Handler) release(b *buffer) {
	if cap(b.bytes) <= keptBuffer {
		h.buffers.Put(b)
	}
}

// trusted is how much of a body arrives before its announced length is believed.
const trusted = 64 << 10

// fill reads a request's body up to [MaxBody].
func (b *buffer) fill(w http.ResponseWriter, r *http.Request) error {
	b.bytes = b.bytes[:0]
	if r.ContentLength > MaxBody {
		w.Header().Set("Connection", "close")
		return tooLarge()
	}
	// The announced length is a claim: a large buffer is for what arrived.
	b.bytes = slices.Grow(b.bytes, int(min(max(r.ContentLength, 511), 32<<10))+1)
	body := http.MaxBytesReader(w, r.Body, MaxBody)
	for {
		if have := len(b.bytes); have == cap(b.bytes) {
			more := have
			if have >= trusted {
				more = max(have, int(r.ContentLength)+1-have)
			}
			b.bytes = slices.Grow(b.bytes, more)
		}
		n, err := body.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		var over *http.MaxBytesError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &over):
			return tooLarge()
		case asQueueError(err) != nil:
			w.Header().Set("Connection", "close")
			return err
		case err != nil:
			return queue.Errorf(codeSerialization, "The request's body could not be read to its end.")
		}
	}
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

// queryRefusal is for clients of the older protocol: they parse XML.
const queryRefusal = `<?xml version="1.0"?>
<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type>` +
	`<Code>AWS.SimpleQueueService.UnsupportedOperation</Code>` +
	`<Message>This endpoint serves the AWS JSON 1.0 protocol and not the Query protocol. ` +
	`Use an AWS SDK released since November 2023, or send POST / with the headers ` +
	`"X-Amz-Target: AmazonSQS.ACTION" and "Content-Type: application/x-amz-json-1.0".</Message>` +
	`<Detail/></Error><RequestId>`

// refuseQuery answers a request that is not of the JSON protocol.
func (x *exchange) refuseQuery() {
	if !isQuery(x.r) {
		body := []byte("<UnknownOperationException/>\n")
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		x.answer(http.StatusNotFound, "text/xml", body, Answer{Code: codeUnknownOperation})
		return
	}
	body := []byte(queryRefusal + x.id + "</RequestId></ErrorResponse>\n")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.answer(http.StatusBadRequest, "text/xml", body, Answer{Code: queue.CodeUnsupportedOperation})
}

// isQuery reports whether a request is of the Query protocol: an Action in
// the URL, or a form.
func isQuery(r *http.Request) bool {
	if r.URL.Query().Get("Action") != "" {
		return true
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "application/x-www-form-urlencoded"
}
