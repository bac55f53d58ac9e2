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

	"tendril/internal/sqsapi/sqswire"
	"tendril/queue"
)

const (
	jsonType  = "application/x-amz-json-1.0"
	sqsPrefix = "AmazonSQS."
)

// serveJSON answers a request of the AWS JSON 1.0 protocol.
func (x *exchange) serveJSON(target string) {
	act, request, err := x.readJSON(target)
	if err != nil {
		x.fail(err)
		return
	}
	x.run(act, request)
}

// readJSON reads and decodes a request.
func (x *exchange) readJSON(target string) (act *action, request any, err error) {
	if act = x.h.actions[target]; act == nil {
		return nil, nil, queue.Errorf(codeUnknownOperation, "The operation %s is not served by this endpoint.",
			quote(target))
	}
	if x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", http.MethodPost)
		return nil, nil, queue.Errorf(codeMethodNotAllowed, "The operation %s takes the method POST, not %s.", target,
			quote(x.r.Method))
	}
	_, x.action, _ = strings.Cut(target, ".")
	in := x.h.buffer()
	defer x.h.release(in)
	request = act.request()
	if err = x.readBody(in); err == nil {
		err = x.authenticate(in.Bytes())
	}
	if err == nil {
		err = act.parameters.decodeJSON(in.Bytes(), request)
	}
	return act, request, err
}

// appender is a response with an encoder of its own, for the ones where the
// standard encoder costs too much.
type appender interface{ appendJSON(dst []byte) []byte }

// appendMembers appends the members of the answer to one message: digests and numbers, which need no escapes.
func (a *accepted) appendMembers(dst []byte) []byte {
	dst = append(append(dst, `"MD5OfMessageBody":"`...), a.MD5OfMessageBody...)
	if a.MD5OfMessageAttributes != "" {
		dst = append(append(dst, `","MD5OfMessageAttributes":"`...), a.MD5OfMessageAttributes...)
	}
	if a.MD5OfMessageSystemAttributes != "" {
		dst = append(append(dst, `","MD5OfMessageSystemAttributes":"`...), a.MD5OfMessageSystemAttributes...)
	}
	dst = append(append(dst, `","MessageId":"`...), a.MessageID...)
	if a.SequenceNumber != "" {
		dst = append(append(dst, `","SequenceNumber":"`...), a.SequenceNumber...)
	}
	return append(dst, '"')
}

// appendBatch appends the answer to a batch of which nothing failed.
func appendBatch[Answer any](dst []byte, answers []Answer, each func(*Answer, []byte) []byte) []byte {
	dst = append(dst, `{"Successful":[`...)
	for i := range answers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = each(&answers[i], dst)
	}
	return append(dst, "]}"...)
}

func (e *acceptedEntry) appendJSON(dst []byte) []byte {
	dst = append(sqswire.AppendString(append(dst, `{"Id":`...), e.ID), ',')
	return append(e.appendMembers(dst), '}')
}

func (e *settledEntry) appendJSON(dst []byte) []byte {
	return append(sqswire.AppendString(append(dst, `{"Id":`...), e.ID), '}')
}

func (a *accepted) appendJSON(dst []byte) []byte {
	return append(a.appendMembers(append(dst, '{')), '}')
}

// encodeJSON appends a response, nothing for an action without output.
func encodeJSON(dst []byte, response any) ([]byte, error) {
	switch r := response.(type) {
	case nil:
		return dst, nil
	case appender:
		return r.appendJSON(dst), nil
	case *batchResponse[acceptedEntry]:
		if len(r.Failed) == 0 && len(r.Successful) > 0 {
			return appendBatch(dst, r.Successful, (*acceptedEntry).appendJSON), nil
		}
	case *batchResponse[settledEntry]:
		if len(r.Failed) == 0 && len(r.Successful) > 0 {
			return appendBatch(dst, r.Successful, (*settledEntry).appendJSON), nil
		}
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
	if encoding := x.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return queue.Errorf(codeEncoding, "The request's body is encoded as %s. Send it without a Content-Encoding.",
			quote(encoding))
	}
	if len(x.r.TransferEncoding) > 0 {
		// net/http drops a Content-Length beside it. Such a request may have been smuggled through a proxy, so nothing
		// else is read from its connection (RFC 9112, section 6.1).
		x.w.Header().Set("Connection", "close")
	}
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
