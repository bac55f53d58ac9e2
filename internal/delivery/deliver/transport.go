package deliver

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"tendril/internal/host/connpool"
)

type request struct {
	head     []byte
	body     string
	protocol *protocol
	end      time.Time // zero means none
	began    time.Time
}

var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest(body string, end time.Time) *request {
	r := requests.Get().(*request)
	*r = request{head: r.head[:0], body: body, end: end}
	return r
}

func (r *request) release() {
	*r = request{head: r.head[:0]}
	requests.Put(r)
}

// transport sends each request to its server at most once; see doc.go.
type transport struct {
	dialer      *dialer
	pool        connpool.Pool[*conn]
	paused      func() bool
	reconnected func() // may be nil
}

// exchange returns an error only if nothing was sent, because ctx is done, deliveries are paused (errPaused) or it
// cannot connect. The caller must release the response.
func (t *transport) exchange(ctx context.Context, r *request) (response, error) {
	if err := ctx.Err(); err != nil {
		return response{}, err
	}
	if t.paused() {
		return response{}, errPaused
	}

	r.began = time.Now()
	if c, found := t.pool.Get(r.began); found {
		res := c.exchange(ctx, r)
		if res.sent || isLate(res.err) {
			return res, nil
		}
		c.Close()
		if t.reconnected != nil {
			t.reconnected()
		}
	}

	c, err := t.dialer.dial(ctx, r.end)
	if err != nil {
		return response{}, err
	}
	r.began = time.Now()
	if t.paused() { // again, because connecting may take seconds
		t.pool.Put(c, r.began)
		return response{}, errPaused
	}
	return c.exchange(ctx, r), nil
}

func (t *transport) release(res *response, now time.Time) {
	if res.reusable {
		t.pool.Put(res.conn, now)
	} else {
		res.conn.Close()
	}
}

// probeWait allows two retransmissions of the SYN packet.
const probeWait = 4 * time.Second

func (t *transport) probe(ctx context.Context) error {
	c, err := t.dialer.dial(ctx, time.Now().Add(probeWait))
	if err != nil {
		return err
	}
	defer c.Close()
	if secure, ok := c.stream.(*tls.Conn); ok {
		if err := awaitRefusal(secure); err != nil {
			return err
		}
	}
	return c.stream.Close()
}
