package httplimit

import (
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"tendril/queue"
)

const (
	small    = 4 << 10          // largest body in bytes that needs no reservation
	patience = 10 * time.Second // maximum wait of a body for memory
)

// Bodies limits the total memory of request bodies, and of responses that reserve memory.
type Bodies struct {
	room *semaphore.Weighted
	most int64
}

// NewBodies returns a limit of total bytes. The maximum body of one request is most, which must not exceed total.
func NewBodies(total, most int64) *Bodies {
	return &Bodies{room: semaphore.NewWeighted(total), most: most}
}

// Handler makes large bodies wait for memory, which they keep until the request ends. If the wait takes too long,
// reading the body fails with a [*queue.Error].
func (b *Bodies) Handler(h http.Handler) http.Handler {
	return &handler{h, b}
}

type handler struct {
	http.Handler
	bodies *Bodies
}

// ServeHTTP is separate from serveLarge so that waiting requests need little stack.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength >= 0 && r.ContentLength <= small {
		h.Handler.ServeHTTP(w, r)
		return
	}
	h.serveLarge(w, r)
}

func (h *handler) serveLarge(w http.ResponseWriter, r *http.Request) {
	large := &body{ReadCloser: r.Body, bodies: h.bodies, request: r}
	r.Body = large
	defer func() { h.bodies.Release(large.claimed) }()
	h.Handler.ServeHTTP(w, r)
}

type body struct {
	io.ReadCloser
	bodies  *Bodies
	request *http.Request
	read    int64 // bytes read so far
	claimed int64 // reserved bytes, which are the maximum the body can need; 0 while the body is small
}

// Read reserves all the memory once the body exceeds the small size. Otherwise two bodies that each held half of the
// memory would block each other.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.claimed > 0:
	case b.read <= small:
		p = p[:min(int64(len(p)), small+1-b.read)] // reading the extra byte shows that the body is large
	default:
		claim := b.bodies.most
		if length := b.request.ContentLength; length >= 0 {
			claim = min(claim, length)
		}
		if err := b.bodies.Acquire(b.request.Context(), claim); err != nil {
			return 0, err
		}
		b.claimed = claim
	}

	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err
}

// Acquire waits for memory. If the wait takes too long, it returns a [*queue.Error].
func (b *Bodies) Acquire(ctx context.Context, bytes int64) error {
	if b.room.TryAcquire(bytes) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if b.room.Acquire(ctx, bytes) != nil {
		return queue.Errorf(queue.CodeRequestThrottled,
			"Too many large messages are in memory at once. Send or receive fewer at once, or try again.")
	}
	return nil
}

// Release returns memory that Acquire reserved.
func (b *Bodies) Release(bytes int64) { b.room.Release(bytes) }
