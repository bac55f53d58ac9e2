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
	// Keys authenticates requests. If nil, every client is trusted.
	Keys *access.Keyring
	// RegistryToken must accompany registry requests if Keys is nil; "" requires none.
	RegistryToken string
	// Archives stores archives for the instances that share the registry. If nil, such requests are rejected.
	Archives Archives
	// Memory limits the memory of receives, and must have at least 4 MiB; nil means no limit.
	Memory Memory
	// Failed is called with the cause of an internal error, which is hidden from the client; may be nil.
	Failed func(action, requestID string, err error)
}

// Handler serves SQS requests from a broker. It is safe for concurrent use.
type Handler struct {
	broker   *broker.Broker
	account  string
	keys     *access.Keyring
	token    string
	memory   Memory
	failed   func(action, requestID string, err error)
	actions  map[string]*action // by X-Amz-Target header
	archives Archives           // nil if this server stores none

	stopped context.Context
	stop    context.CancelFunc

	buffers sync.Pool
}

// New returns a handler that serves b. Close b only after the last request.
func New(b *broker.Broker, opts *Options) *Handler {
	opts = cmp.Or(opts, &Options{})
	h := &Handler{
		broker:   b,
		account:  strings.Split(b.ARN(""), ":")[4], // arn:aws:sqs:REGION:ACCOUNT:NAME
		keys:     opts.Keys,
		token:    opts.RegistryToken,
		memory:   opts.Memory,
		failed:   opts.Failed,
		actions:  actions(),
		archives: opts.Archives,
	}

	h.stopped, h.stop = context.WithCancel(context.Background())
	h.buffers.New = func() any { return new(bytes.Buffer) }
	return h
}

// Stop ends the waits of current and future ReceiveMessage calls. Other calls are still served. It may be called
// repeatedly.
func (h *Handler) Stop() { h.stop() }

// ServeHTTP answers challenges of package proof, and rejects requests that web pages may have sent.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if proof.Answer(w, r, h.token) {
		return
	}

	x := &exchange{h: h, w: w, r: r, ctx: r.Context(), broker: h.broker, form: formOf(r), id: uuid.NewString(),
		room: answerRoom{memory: h.memory}}
	if err := h.rejectBrowser(r); err != nil {
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

// keptBuffer is the size in bytes above which buffers are not reused.
const keptBuffer = 256 << 10

func (h *Handler) buffer() *bytes.Buffer { return h.buffers.Get().(*bytes.Buffer) }

func (h *Handler) release(b *bytes.Buffer) {
	if b.Cap() <= keptBuffer {
		h.buffers.Put(b)
	}
}

func actions() map[string]*action {
	all := map[string]*action{}
	for prefix, api := range map[string]map[string]action{sqsPrefix: sqsActions(), registryPrefix: registryActions()} {
		for name, act := range api {
			act.describe(name)
			all[prefix+name] = &act
		}
	}
	return all
}

func asQueueError(err error) *queue.Error {
	refusal, _ := errors.AsType[*queue.Error](err)
	return refusal
}

// Server returns a server for h whose timeouts allow long polls but stop slow or stalled clients. Its Shutdown calls
// h.Stop. The caller may set other fields before use.
func Server(h *Handler) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		// This starts at the end of the header: 30 s for the body, 20 s for the longest poll, 30 s for the reply.
		WriteTimeout: 80 * time.Second,
		// Go's HTTP client closes idle connections after 90 s, so it never uses one that the server is closing.
		IdleTimeout:    120 * time.Second,
		MaxHeaderBytes: 64 << 10, // a signed request has about 1 KiB
	}
	server.RegisterOnShutdown(h.Stop)
	return server
}
