package httplimit

import (
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"tendril/queue"
)

// Small is how much of a body is read without asking for room.
const Small = 64 << 10

// patience is how long a large body waits for room.
const patience = 10 * time.Second

// Bodies bounds the bytes of request bodies that are held at once.
type Bodies struct {
	room *semaphore.Weighted
	most int64
}

// NewBodies returns one with room for total bytes; most is the longest body
// that is read of one request, and no more than total.
func NewBodies(total, most int64) *Bodies {
	return &Bodies{room: semaphore.NewWeighted(total), most: most}
}

// Handler returns h with bodies that wait for room. What a request has got is
// kept until it is answered. A body that gets none in time fails with a
// [*queue.Error].
func (b *Bodies) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength >= 0 && r.ContentLength <= Small {
			h.ServeHTTP(w, r)
			return
		}
		body := &body{ReadCloser: r.Body, bodies: b, request: r}
		r.Body = body
		defer body.release()
		h.ServeHTTP(w, r)
	})
}

// body is a large one, or one of unknown length.
type body struct {
	io.ReadCloser
	bodies  *Bodies
	request *http.Request
	read    int64 // bytes
	claimed int64 // bytes, all that it can need; 0 while it is small
}

// Read waits for room once more was read than what is [Small]. It asks for all
// of it at once: two that held half each would wait for one another.
func (b *body) Read(p []byte) (int, error) {
	if b.claimed == 0 {
		if b.read > Small {
			if err := b.claim(); err != nil {
				return 0, err
			}
		} else {
			p = p[:min(int64(len(p)), Small+1-b.read)] // by the one more it shows that it is large
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	return n, err
}

func (b *body) claim() error {
	claim := b.bodies.most
	if length := b.request.ContentLength; length >= 0 {
		claim = min(claim, length)
	}
	ctx, cancel := context.WithTimeout(b.request.Context(), patience)
	defer cancel()
	if b.bodies.room.Acquire(ctx, claim) != nil {
		return queue.Errorf(queue.CodeRequestThrottled,
			"Too many large requests are being read at once. Send fewer of them at once, or try again.")
	}
	b.claimed = claim
	return nil
}

func (b *body) release() {
	if b.claimed > 0 {
		b.bodies.room.Release(b.claimed)
	}
}
