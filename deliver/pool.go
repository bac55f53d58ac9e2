package deliver

import (
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
		c := p.pop()
		if c == nil {
			return nil
		}
		if now.Sub(c.idleSince) < p.keep && c.alive() {
			return c
		}
		c.close()
	}
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.unused) - 1
	if last < 0 {
		return nil
	}
	c := p.unused[last]
	p.unused[last] = nil
	p.unused = p.unused[:last]
	return c
}

// put keeps c, or closes it.
func (p *pool) put(c *conn, now time.Time) {
	if !p.push(c, now) {
		c.close()
	}
}

func (p *pool) push(c *conn, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.keep < 0 {
		return false
	}
	c.reused, c.idleSince = true, now
	p.unused = append(p.unused, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.keep, p.closeOld)
	}
	return true
}

// closeOld closes what was kept long enough and comes back for the rest.
func (p *pool) closeOld() {
	now := time.Now()
	p.mu.Lock()
	old := 0
	for old < len(p.unused) && now.Sub(p.unused[old].idleSince) >= p.keep {
		p.unused[old].close()
		old++
	}
	left := copy(p.unused, p.unused[old:])
	clear(p.unused[left:])
	p.unused = p.unused[:left]
	if left > 0 {
		p.sweep.Reset(p.keep - now.Sub(p.unused[0].idleSince))
	} else {
		p.sweep = nil
	}
	p.mu.Unlock()
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
