package deliver

import (
	"slices"
	"sync"
	"time"
)

// pool keeps unused connections for a short while, the last one used on top,
// so that under a falling load the others grow old and are closed.
type pool struct {
	keep time.Duration // negative: nothing is kept

	mu     sync.Mutex
	unused []*conn     // ordered by idleSince
	sweep  *time.Timer // nil while unused is empty
	closed bool
}

// get returns a kept connection that is fit for another request; nil when there
// is none.
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
	c.reused, c.idleSince = true, now
	p.unused = append(p.unused, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.keep, p.closeOld)
	}
}

// closeOld closes what was kept long enough and comes back for the rest.
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

// close closes what is kept, and from now on what is put back.
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
