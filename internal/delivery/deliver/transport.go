package deliver

import (
	"context"
	"crypto/tls"
	"slices"
	"sync"
	"time"
)

type transport interface {
	// exchange sends a request at most once. An error means that nothing was sent. The caller must release the
	// answer.
	exchange(ctx context.Context, r *request) (answer, error)
	// probe returns nil if the server accepts connections.
	probe(ctx context.Context) error
	// tlsConfig is for the next connection, or nil without TLS.
	tlsConfig() *tls.Config
	// close closes unused connections immediately and the others when their exchanges end.
	close()
}

type request struct {
	head     []byte
	body     string
	protocol *protocol
	end      time.Time // zero means none
	began    time.Time // set by transport.exchange
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

// onceTransport never sends a request twice, see doc.go.
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

// The connection returns to the pool or is closed.
func (a *answer) release(now time.Time) {
	if a.keep {
		a.pool.put(a.conn, now)
	} else {
		a.conn.close()
	}
}

// probeWait is long enough for two retransmissions of the SYN packet.
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

// pool reuses the most recently used connection first, so that surplus connections expire.
type pool struct {
	keep time.Duration // a negative value disables reuse

	mu     sync.Mutex
	unused []*conn     // in the order of idleSince
	sweep  *time.Timer // nil while unused is empty
	closed bool
}

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
