package sqsapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tendril/broker"
	"tendril/internal/access"
	"tendril/internal/host/proof"
	"tendril/queue"
)

// Options configure a [Handler]. A nil *Options is valid.
type Options struct {
	// Keys authenticate every request. nil means that whoever can connect is trusted.
	Keys *access.Keyring
	// RegistryToken is what a caller of the registry shows where there are no keys; "" lets everybody in.
	RegistryToken string
	// Memory is what receives take for their answers; nil where there is plenty. It must have 4 MiB at least.
	Memory Memory
	// Events are the listeners; nil for none.
	Events *Events
}

// Events are the handler's listeners. Every field may be nil. They are called
// on the request's goroutine and must not block.
type Events struct {
	// Answered is called after each reply was written, refusals included.
	// It is not called for a client that left before its reply.
	Answered func(Answer)
}

// Answer is what became of one request.
type Answer struct {
	// Action is the SQS action ("SendMessage") or one of the registry's
	// ("Fire"); "" when the request named none that is served.
	Action string
	// Status is the HTTP status.
	Status int
	// Code is the code of the error that was answered; "" for success.
	Code string
	// Messages counts the messages that the reply accepted, handed out,
	// deleted or changed; 0 for other actions.
	Messages int
	// Duration runs from the request's header to the written reply, long
	// poll included.
	Duration time.Duration
	// Err is the cause of an answer of 500 and above, of which the client is
	// told no more than it can use; nil otherwise.
	Err error
}

// Handler answers SQS requests from a broker. It is safe for concurrent use.
type Handler struct {
	broker  *broker.Broker
	account string
	guard   guard
	keys    *access.Keyring
	token   string // of the registry
	memory  Memory
	events  Events
	actions map[string]*action // by the target header

	stopped context.Context // done once Stop was called
	stop    context.CancelFunc

	buffers sync.Pool // of *bytes.Buffer
}

// New returns a handler that serves b. The caller keeps b and closes it after
// the last request.
func New(b *broker.Broker, opts *Options) *Handler {
	opts = cmp.Or(opts, &Options{})
	h := &Handler{
		broker:  b,
		account: strings.Split(b.ARN(""), ":")[4], // arn:aws:sqs:REGION:ACCOUNT:NAME
		guard:   guard{signed: opts.Keys != nil},
		keys:    opts.Keys,
		token:   opts.RegistryToken,
		memory:  opts.Memory,
		events:  *cmp.Or(opts.Events, &Events{}),
		actions: actions(),
	}
	for target, act := range h.actions {
		if strings.HasPrefix(target, registryPrefix) {
			*act = h.admitted(*act)
		}
	}

	h.stopped, h.stop = context.WithCancel(context.Background())
	h.buffers.New = func() any { return new(bytes.Buffer) }
	return h
}

// Stop ends the waits of all ReceiveMessage calls: those that wait are
// answered at once with no messages, and later ones do not wait. Everything
// else goes on being served. It may be called more than once.
func (h *Handler) Stop() { h.stop() }

// ServeHTTP answers one request. Requests that a web page could have caused,
// or that name a host this endpoint does not answer to, get status 403.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if proof.Answer(w, r, h.token) {
		return
	}
	x := &exchange{h: h, w: w, r: r, form: formOf(r), began: time.Now(), id: uuid.NewString()}
	if err := h.guard.check(r); err != nil {
		x.fail(err)
		return
	}
	target := r.Header.Get("X-Amz-Target")
	if target == "" {
		x.serveQuery()
		return
	}

	act, request, err := x.readJSON(target)
	if err != nil {
		x.fail(err)
		return
	}
	x.run(act, request)
}

// keptBuffer is the largest buffer kept for the next request: larger ones are
// rare and would stay forever.
const keptBuffer = 256 << 10

func (h *Handler) buffer() *bytes.Buffer { return h.buffers.Get().(*bytes.Buffer) }

func (h *Handler) release(b *bytes.Buffer) {
	if b.Cap() <= keptBuffer {
		h.buffers.Put(b)
	}
}

// actions returns all actions that are served, by target.
func actions() map[string]*action {
	all := map[string]*action{}
	for name, act := range sqsActions() {
		act.describe(name)
		all[sqsPrefix+name] = &act
	}
	for name, act := range registryActions() {
		act.describe(name)
		all[registryPrefix+name] = &act
	}
	return all
}

// asQueueError returns err as a refusal that a client can be told, or nil
// when it is another error.
func asQueueError(err error) *queue.Error {
	var refusal *queue.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return nil
}

// Server returns a server for h with time limits that fit long polls and
// that clients which trickle, stall or never leave cannot exhaust. Its
// Shutdown calls [Handler.Stop], so that waiting ReceiveMessage calls do not
// hold it up. The caller may set Addr, ErrorLog and the like before use.
func Server(h *Handler) *http.Server {
	server := &http.Server{
		Handler: h,
		// These two end requests that trickle in.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		// It counts from the end of the request's header, so it has to hold the body (30 s), the
		// longest poll (20 s) and the reply.
		WriteTimeout: 80 * time.Second,
		// It is longer than the 90 s after which Go's HTTP client, and with it the AWS SDK for Go,
		// closes an idle connection: the client closes first and never meets a connection that is
		// just being closed.
		IdleTimeout:    120 * time.Second,
		MaxHeaderBytes: 64 << 10, // ample: a signed request has about 1 KiB of header
	}
	server.RegisterOnShutdown(h.Stop)
	return server
}
