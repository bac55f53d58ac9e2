package sqsapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tendril/queue"
	"tendril/sqswire"
)

const (
	jsonType  = "application/x-amz-json-1.0"
	sqsPrefix = "AmazonSQS."
)

// serveJSON answers a request of the AWS JSON 1.0 protocol.
func (x *exchange) serveJSON(target string) {
	act, known := x.h.actions[target]
	if !known {
		x.failJSON(queue.Errorf(codeUnknownOperation, "The operation %s is not served by this endpoint.", quote(target)))
		return
	}
	if x.r.Method != http.MethodPost {
		x.failJSON(queue.Errorf(codeMethodNotAllowed, "The operation %s takes the method POST, not %s.", target,
			quote(x.r.Method)))
		return
	}
	_, x.action, _ = strings.Cut(target, ".")
	in := x.h.buffers.Get().(*bytes.Buffer)
	defer func() {
		if in.Cap() <= keptBuffer {
			x.h.buffers.Put(in)
		}
	}()
	request := act.request()
	err := x.readBody(in)
	if err == nil {
		err = decodeJSON(in.Bytes(), request)
	}
	if err != nil {
		x.failJSON(err)
		return
	}
	response, err := act.run(x.call(), request)
	if err != nil && x.r.Context().Err() != nil {
		return // the client has left: there is nobody to answer
	}
	// The request's strings are copies: its buffer may take the response.
	var body []byte
	if err == nil {
		body, err = encodeJSON(in.Bytes()[:0], response)
	}
	if err != nil {
		x.failJSON(err)
		return
	}
	*in = *bytes.NewBuffer(body)
	var report Answer
	if c, ok := response.(counter); ok {
		report.Messages = c.messages()
	}
	x.answer(http.StatusOK, jsonType, body, report)
}

// failJSON answers an error. What is not a refusal stays inside: the client
// learns that something failed, and the listener learns what.
func (x *exchange) failJSON(err error) {
	refusal := asQueueError(err)
	var report Answer
	if refusal == nil {
		refusal = queue.Errorf(codeInternal, "The request failed inside the server. Its request id is %s.", x.id)
	}
	report.Code = refusal.Code
	f, side := faultOf(refusal.Code), ";Sender"
	if !f.sender() {
		report.Err, side = err, ";Receiver"
	}
	if f.status == http.StatusMethodNotAllowed {
		x.w.Header().Set("Allow", http.MethodPost)
	}
	x.w.Header().Set("X-Amzn-Query-Error", f.query+side)
	body := append([]byte(`{"__type":"com.amazonaws.sqs#`), refusal.Code...)
	body = append(body, `","message":`...)
	body = sqswire.AppendString(body, textOf(refusal))
	body = append(body, '}')
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
	err := json.MarshalWrite(out, response, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return out.Bytes(), err
}

// keptBuffer is the largest buffer kept for the next request: larger ones are
// rare and would stay forever.
const keptBuffer = 256 << 10

// trusted is how much of a body arrives before its announced length is believed: the length is a
// claim, and a large buffer is for what arrived.
const trusted = 64 << 10

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
		x.answer(http.StatusNotFound, "text/xml", body, Answer{Code: codeUnknownOperation})
		return
	}
	body := []byte(queryRefusal + x.id + "</RequestId></ErrorResponse>\n")
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
