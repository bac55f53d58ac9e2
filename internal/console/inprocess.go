package console

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"tendril/api"
)

// NewInProcessClient returns a client that asks h, the [Server] of this process, as whoever sent the request from:
// with its cookie, authorization, host and address. What it may see and do is what its sender may.
func NewInProcessClient(h http.Handler, from *http.Request) *api.Client {
	return api.NewClient(api.Instance{PID: os.Getpid(), Console: from.Host}, &http.Client{Transport: inProcess{h, from},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
}

// inProcess is the transport of requests that a handler of this process answers.
type inProcess struct {
	handler http.Handler
	from    *http.Request
}

// RoundTrip answers a request. The body of the answer may be a stream; closing it ends the handler's context.
func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	if local, ok := p.from.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, local)
	}
	r := req.Clone(ctx)
	r.Host, r.RemoteAddr, r.TLS, r.RequestURI = p.from.Host, p.from.RemoteAddr, p.from.TLS, req.URL.RequestURI()
	for _, name := range []string{"Authorization", "Cookie", api.SessionKeyHeader, "X-Forwarded-Proto", "X-Forwarded-For"} {
		if values, ok := p.from.Header[name]; ok {
			r.Header[name] = values
		}
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { reader.CloseWithError(context.Cause(ctx)) })
	w := &answerWriter{header: http.Header{}, body: writer, begun: make(chan struct{})}
	go w.serve(p.handler, r)
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: -1, Request: req, Body: answerBody{reader, cancel},
	}, nil
}

// answerBody ends its handler when it is closed.
type answerBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the handler.
func (b answerBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// answerWriter is the [http.ResponseWriter] of a request in this process.
type answerWriter struct {
	header http.Header
	body   *io.PipeWriter

	once   sync.Once
	begun  chan struct{} // closes when status and sent are set
	status int
	sent   http.Header
}

// serve runs the handler. A panic ends its answer, as in an HTTP server.
func (w *answerWriter) serve(h http.Handler, r *http.Request) {
	var failure error
	defer func() {
		if p := recover(); p != nil {
			failure = fmt.Errorf("the handler of %s panicked: %v", r.URL.Path, p)
			w.WriteHeader(http.StatusInternalServerError)
		}
		w.WriteHeader(http.StatusOK)
		w.body.CloseWithError(failure)
	}()
	h.ServeHTTP(w, r)
}

// Header returns the header that WriteHeader sends.
func (w *answerWriter) Header() http.Header { return w.header }

// WriteHeader begins the answer, once.
func (w *answerWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

// Write sends a part of the body, and waits until it is read.
func (w *answerWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush does nothing more than begin the answer: nothing is held back.
func (w *answerWriter) Flush() { w.WriteHeader(http.StatusOK) }
