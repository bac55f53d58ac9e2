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
	small    = 4 << 10          // of a body is read without asking for room, as the server's own buffer does
	patience = 10 * time.Second // is how long a body waits for room
)

// Bodies bounds the bytes of request bodies, and of answers that ask for it, that are held at once.
type Bodies struct {
	room *semaphore.Weighted
	most int64
}

// NewBodies has room for total bytes; most, up to total, is the longest body of one request.
func NewBodies(total, most int64) *Bodies {
	return &Bodies{room: semaphore.NewWeighted(total), most: most}
}

// Handler returns h with bodies that wait for room, which they keep until the answer. One
// that gets none in time fails with a [*queue.Error].
func (b *Bodies) Handler(h http.Handler) http.Handler {
	return &handler{h, b}
}

type handler struct {
	http.Handler
	bodies *Bodies
}

// ServeHTTP passes small bodies on at once; its part of the stack is one that each waiting request has.
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

// body is a large one, or one of unknown length.
type body struct {
	io.ReadCloser
	bodies  *Bodies
	request *http.Request
	read    int64 // bytes
	claimed int64 // bytes, all that it can need; 0 while it is small
}

// Read waits for room once more was read than what is small. It asks for all
// of it at once: two that held half each would wait for one another.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.claimed > 0:
	case b.read <= small:
		p = p[:min(int64(len(p)), small+1-b.read)] // by the one more it shows that it is large
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

// Acquire waits until there is room for so many bytes, or for a while: then it returns a [*queue.Error].
func (b *Bodies) Acquire(ctx context.Context, bytes int64) error {
	if b.room.TryAcquire(bytes) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if b.room.Acquire(ctx, bytes) != nil {
		return queue.Errorf(queue.CodeRequestThrottled,
			"Too many large messages are in memory at once. Send or receive fewer of them at once, or try again.")
	}
	return nil
}

// Release gives room back.
func (b *Bodies) Release(bytes int64) { b.room.Release(bytes) }
