package sqsapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"tendril/broker"
	"tendril/internal/access"
	"tendril/queue"
)

type exchange struct {
	h      *Handler
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	broker *broker.Broker
	form   replyForm
	id     string
	action string
	caller *access.Caller
	queue  string // "" for an action without a queue
	room   answerRoom
}

func (x *exchange) readJSON(target string) (act *action, request any, err error) {
	act = x.h.actions[target]
	if act == nil {
		return nil, nil, queue.Errorf(codeUnknownOperation, "The operation %s is not served by this endpoint.",
			quote(target))
	}
	if x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", http.MethodPost)
		return nil, nil, queue.Errorf(codeMethodNotAllowed, "The operation %s requires the method POST, not %s.", target,
			quote(x.r.Method))
	}
	_, x.action, _ = strings.Cut(target, ".")

	in := x.h.buffer()
	defer x.h.release(in)
	if err := x.readBody(in); err != nil {
		return nil, nil, err
	}
	if err := x.authenticate(in.Bytes()); err != nil {
		return nil, nil, err
	}
	request = act.request()
	return act, request, act.parameters.decodeJSON(in.Bytes(), request)
}

// Once trustedBytes have arrived, readBody allocates a buffer for the whole Content-Length, for which package httplimit
// has reserved memory.
const trustedBytes = 64<<10 + bytes.MinRead

func (x *exchange) readBody(in *bytes.Buffer) error {
	in.Reset()
	if encoding := x.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return queue.Errorf(codeEncoding, "The request's body is encoded as %s. Send it without a Content-Encoding.",
			quote(encoding))
	}
	if x.r.ContentLength > MaxBody {
		x.w.Header().Set("Connection", "close")
		return tooLarge()
	}

	body := http.MaxBytesReader(x.w, x.r.Body, MaxBody)
	_, err := in.ReadFrom(io.LimitReader(body, trustedBytes))
	if err == nil && in.Len() == trustedBytes {
		in.Grow(max(0, int(x.r.ContentLength)-trustedBytes) + bytes.MinRead)
		_, err = in.ReadFrom(body)
	}

	if err == nil {
		return nil
	}
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return tooLarge()
	}
	if asQueueError(err) != nil {
		x.w.Header().Set("Connection", "close")
		return err
	}
	return queue.Errorf(codeSerialization, "The request body is incomplete.")
}

func tooLarge() error {
	return queue.Errorf(codeTooLarge,
		"The request's body is larger than %d bytes, the maximum of a valid request.", MaxBody)
}

func (x *exchange) authenticate(body []byte) (err error) {
	x.caller = access.OwnerOf(x.r)
	if x.h.keys != nil {
		x.caller, err = x.h.keys.Verify(x.r, body)
	}
	return err
}

// Thousands of long polls may wait in run, so its stack must be small.
func (x *exchange) run(act *action, request any) {
	defer x.room.release()
	response, err := act.run(x, request)
	if err != nil && x.ctx.Err() != nil {
		return // the client has disconnected
	}
	if err == nil {
		err = x.succeed(act, response)
	}
	if err != nil {
		x.fail(err)
	}
}

func (x *exchange) succeed(act *action, response any) error {
	out := x.h.buffer()
	defer x.h.release(out)
	body, err := x.form.success(out.Bytes()[:0], x, act, response)
	if err != nil {
		return err
	}
	*out = *bytes.NewBuffer(body)
	x.reply(http.StatusOK, x.form.contentType(), body)
	return nil
}

// fail hides the cause of an internal error from the client.
func (x *exchange) fail(err error) {
	refusal := asQueueError(err)
	if refusal == nil {
		refusal = queue.Errorf(codeInternal, "The request failed in the server. Its request ID is %s.", x.id)
		if x.h.failed != nil {
			x.h.failed(x.action, x.id, err)
		}
	}
	x.reply(faultOf(refusal.Code).status, x.form.contentType(), x.form.failure(nil, x, refusal))
}

func (x *exchange) reply(status int, contentType string, body []byte) {
	header := x.w.Header()
	header.Set("X-Amzn-Requestid", x.id)
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	if len(body) > 0 {
		// If the client has disconnected, received messages become visible after their visibility timeout.
		_, _ = x.w.Write(body)
	}
}

// queueURL contains the host from the request, because older SDKs send requests to a queue's URL.
func (x *exchange) queueURL(name string) string {
	scheme := "http://"
	if x.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + x.r.Host + "/" + x.h.account + "/" + name
}

func (x *exchange) queueURLs(names []string) []string {
	urls := make([]string, len(names))
	for i, name := range names {
		urls[i] = x.queueURL(name)
	}
	return urls
}

func (x *exchange) traceHeader() string { return x.r.Header.Get("X-Amzn-Trace-Id") }

func (x *exchange) checkExists(name string) error {
	_, err := x.broker.Tags(name)
	return err
}
