package deliver

import (
	"context"
	"crypto/tls"
	"slices"
	"sync"
	"time"
)

// transport carries requests to one server and brings back the answers. Nothing above it knows connections.
type transport interface {
	// exchange sends a request at most once and waits for its answer, as long as the server gives signs of life. An
	// error means that there was no connection; then nothing was sent. The caller releases the answer.
	exchange(ctx context.Context, r *request) (answer, error)
	// probe returns nil if the server accepts connections.
	probe(ctx context.Context) error
	// tlsConfig is the next connection's; nil without TLS.
	tlsConfig() *tls.Config
	// close closes unused connections, and the others once their exchanges end.
	close()
}

// request is sent by one exchange, with the rules for its answer.
type request struct {
	head     []byte
	body     string
	protocol *protocol
	end      time.Time // of the exchange; zero if unbounded
	began    time.Time // when it went out; set by exchange
}

// requests are kept for the memory of their heads.
var requests = sync.Pool{New: func() any { return new(request) }}

func newRequest(body string, end time.Time) *request {
	r := requests.Get().(*request)
	*r = request{head: r.head[:0], body: body, end: end}
	return r
}

// release gives the request back. Its head is used again.
func (r *request) release() {
	*r = request{head: r.head[:0]}
	requests.Put(r)
}

// onceTransport is a transport of its own for HTTP/1.1, which never sends a request twice (see doc.go).
type onceTransport struct {
	dialer      *dialer
	pool        pool
	reconnected func() // may be nil
}

func (t *onceTransport) exchange(ctx context.Context, r *request) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	r.began = time.Now()
	if c := t.pool.get(r.began); c != nil {
		a := c.exchange(ctx, r)
		if a.sent || isLate(a.err) {
			a.conn, a.pool = c, &t.pool
			return a, nil
		}
		c.close()
		if t.reconnected != nil {
			t.reconnected()
		}
	}

	c, err := t.dialer.dial(ctx, r.end)
	if err != nil {
		return answer{}, err
	}
	r.began = time.Now()
	a := c.exchange(ctx, r)
	a.conn, a.pool = c, &t.pool
	return a, nil
}

// release ends the use of the answer: its connection carries another exchange, or is closed.
func (a *answer) release(now time.Time) {
	if a.keep {
		a.pool.put(a.conn, now)
	} else {
		a.conn.close()
	}
}

// probeWait bounds a probe: long enough for two repeats of a connection's first
// packet.
const probeWait = 4 * time.Second

func (t *onceTransport) probe(ctx context.Context) error {
	c, err := t.dialer.dial(ctx, time.Now().Add(probeWait))
	if err != nil {
		return err
	}
	defer c.close()
	if secure, ok := c.stream.(*tls.Conn); ok {
		if err := awaitRefusal(secure); err != nil {
			return err
		}
	}
	return c.stream.Close()
}

func (t *onceTransport) tlsConfig() *tls.Config { return t.dialer.config() }

func (t *onceTransport) close() { t.pool.close() }

// pool keeps unused connections for a short while, the last one used on top,
// so that under a falling load the others grow old and are closed.
type pool struct {
	keep time.Duration // negative: nothing is kept

	mu     sync.Mutex
	unused []*conn     // ordered by idleSince
	sweep  *time.Timer // nil while unused is empty
	closed bool
}

// get returns a kept connection that is fit for another request; nil if there
// isn't one.
func (p *pool) get(now time.Time) *conn {
	for {
		p.mu.Lock()
		last := len(p.unused) - 1
		if last < 0 {
			p.mu.Unlock()
			return nil
		}
		c := p.unused[last]
		p.unused[last] = nil
		p.unused = p.unused[:last]
		p.mu.Unlock()
		if now.Sub(c.idleSince) < p.keep && c.alive() {
			return c
		}
		c.close()
	}
}

// put keeps c, or closes it.
func (p *pool) put(c *conn, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.keep < 0 {
		c.close()
		return
	}
	c.idleSince = now
	p.unused = append(p.unused, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.keep, p.closeOld)
	}
}

// closeOld closes connections that were kept long enough, and comes back for the rest.
func (p *pool) closeOld() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.unused) > 0 && now.Sub(p.unused[0].idleSince) >= p.keep {
		p.unused[0].close()
		p.unused = slices.Delete(p.unused, 0, 1)
	}
	if len(p.unused) == 0 {
		p.sweep = nil
		return
	}
	p.sweep.Reset(p.keep - now.Sub(p.unused[0].idleSince))
}

// close closes the kept connections, and from now on those that are put back.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.unused {
		c.close()
	}
	p.unused = nil
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}
