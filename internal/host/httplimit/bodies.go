package httplimit

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"tendril/queue"
)

const (
	smallBody = 4 << 10 // bytes; needs no reservation
	maxWait   = 10 * time.Second
	usualBody = 1 << 20 // bytes

	// A body that arrives more slowly than leastRate, in bytes per second, is cut off if others wait for memory.
	// uploadGrace is extra time for distant clients.
	leastRate   = 256 << 10
	uploadGrace = 500 * time.Millisecond
	recheckRate = 100 * time.Millisecond
)

// Bodies limits the total memory of request bodies, and of responses that reserve memory.
type Bodies struct {
	most int64

	mu      sync.Mutex
	free    int64
	waiting []*reservation // in the order in which they get memory
}

// reservation is a request for memory, granted in the order of due. A body's due time increases with its size, so that
// small bodies overtake large ones without starving them. A response is due at once, because its request has already
// been checked.
type reservation struct {
	bytes   int64
	due     time.Time
	granted chan struct{}
}

// NewBodies limits all bodies to total bytes. The handler must limit each body to most bytes, which must not exceed
// total.
func NewBodies(total, most int64) *Bodies {
	return &Bodies{free: total, most: most}
}

// Handler makes large bodies wait for memory, which they keep until the request ends. If the wait takes too long, or
// the body arrives too slowly while others wait, reading it fails with a [*queue.Error].
func (b *Bodies) Handler(h http.Handler) http.Handler {
	return &handler{h, b}
}

type handler struct {
	http.Handler
	bodies *Bodies
}

// serveLarge is separate, so that waiting requests need little stack.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		h.Handler.ServeHTTP(w, r)
		return
	}
	h.serveLarge(w, r)
}

func (h *handler) serveLarge(w http.ResponseWriter, r *http.Request) {
	large := &body{ReadCloser: r.Body, bodies: h.bodies, request: r, conn: http.NewResponseController(w)}
	r.Body = large
	defer func() {
		large.end()
		h.bodies.Release(large.claimed)
	}()
	h.Handler.ServeHTTP(w, r)
}

type body struct {
	io.ReadCloser
	bodies  *Bodies
	request *http.Request
	conn    *http.ResponseController
	claimed int64 // 0 while the body is small

	mu       sync.Mutex
	read     int64
	since    time.Time
	complete bool
	cut      bool
}

// Read reserves all memory for a large body at once: two bodies that each held half of what they need could deadlock.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.claimed > 0:
	case b.read <= smallBody:
		p = p[:min(int64(len(p)), smallBody+1-b.read)] // the extra byte shows that the body is large
	default:
		if err := b.claimMemory(); err != nil {
			return 0, err
		}
	}

	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read += int64(n)
	b.complete = b.complete || err != nil || b.read == b.request.ContentLength
	if b.cut && err != nil && err != io.EOF {
		err = queue.Errorf(queue.CodeRequestThrottled,
			"The request's body arrived too slowly while other requests were waiting for memory. Send it again.")
	}
	return n, err
}

func (b *body) claimMemory() error {
	claim := b.bodies.most
	if length := b.request.ContentLength; length >= 0 {
		claim = min(claim, length)
	}
	due := time.Now().Add(time.Duration(claim) * maxWait / usualBody)
	if err := b.bodies.reserve(b.request.Context(), claim, due); err != nil {
		return err
	}

	b.claimed = claim
	b.since = time.Now()
	time.AfterFunc(uploadGrace, b.cutIfSlow)
	return nil
}

func (b *body) cutIfSlow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.complete {
		return
	}
	allowed := uploadGrace + time.Duration(b.read)*time.Second/leastRate
	b.cut = time.Since(b.since) >= allowed && b.bodies.isShort()
	if b.cut {
		_ = b.conn.SetReadDeadline(time.Now()) // fails only in tests, whose writers have no deadlines
		return
	}
	time.AfterFunc(recheckRate, b.cutIfSlow)
}

func (b *body) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complete = true
}

func (b *Bodies) isShort() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0
}

// Acquire waits for memory. If that takes too long or ctx ends, it returns a [*queue.Error].
func (b *Bodies) Acquire(ctx context.Context, bytes int64) error {
	return b.reserve(ctx, bytes, time.Now())
}

func (b *Bodies) reserve(ctx context.Context, bytes int64, due time.Time) error {
	r := b.enqueue(bytes, due)
	if isClosed(r.granted) {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	select {
	case <-r.granted:
		return nil
	case <-ctx.Done():
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	if isClosed(r.granted) {
		return nil
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(other *reservation) bool { return other == r })
	b.grant()
	return queue.Errorf(queue.CodeRequestThrottled,
		"Too many large messages are in memory at once. Send or receive fewer at once, or try again.")
}

func (b *Bodies) enqueue(bytes int64, due time.Time) *reservation {
	r := &reservation{bytes, due, make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := slices.IndexFunc(b.waiting, func(other *reservation) bool { return other.due.After(due) })
	if next < 0 {
		next = len(b.waiting)
	}
	b.waiting = slices.Insert(b.waiting, next, r)
	b.grant()
	return r
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// b.mu must be held.
func (b *Bodies) grant() {
	for len(b.waiting) > 0 && b.waiting[0].bytes <= b.free {
		b.free -= b.waiting[0].bytes
		close(b.waiting[0].granted)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

// Release releases memory reserved by Acquire.
func (b *Bodies) Release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += bytes
	b.grant()
}
