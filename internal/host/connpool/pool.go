package connpool

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Conn is a connection in a [Pool].
type Conn interface {
	// Alive reports whether the connection is open and has no data to read.
	Alive() bool
	Close() error
}

// Pool keeps unused connections for reuse. It prefers the most recently used one, so that surplus ones expire. It is
// safe for concurrent use.
type Pool[C Conn] struct {
	// Keep is how long an unused connection is kept; 0 or less disables reuse.
	Keep time.Duration

	mu     sync.Mutex
	unused []unused[C]
	sweep  *time.Timer
	closed bool
}

type unused[C Conn] struct {
	conn  C
	since time.Time
}

// Get returns a reusable connection, or false.
func (p *Pool[C]) Get(now time.Time) (conn C, found bool) {
	for {
		u, found := p.takeNewest()
		if !found {
			return conn, false
		}
		if now.Sub(u.since) < p.Keep && u.conn.Alive() {
			return u.conn, true
		}
		u.conn.Close()
	}
}

func (p *Pool[C]) takeNewest() (u unused[C], found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.unused) - 1
	if last < 0 {
		return u, false
	}
	u = p.unused[last]
	p.unused = slices.Delete(p.unused, last, last+1)
	return u, true
}

// Put adds a connection whose last exchange is complete.
func (p *Pool[C]) Put(conn C, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.Keep <= 0 {
		conn.Close()
		return
	}
	p.unused = append(p.unused, unused[C]{conn, now})
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.Keep, p.closeOld)
	}
}

func (p *Pool[C]) closeOld() {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.unused) > 0 && now.Sub(p.unused[0].since) >= p.Keep {
		p.unused[0].conn.Close()
		p.unused = slices.Delete(p.unused, 0, 1)
	}
	if len(p.unused) == 0 {
		p.sweep = nil
		return
	}
	p.sweep.Reset(p.Keep - now.Sub(p.unused[0].since))
}

// Close closes unused connections immediately, and the others when they are put back.
func (p *Pool[C]) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, u := range p.unused {
		u.conn.Close()
	}
	p.unused = nil
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}

// Peeker checks without blocking whether a connection has data to read.
type Peeker struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool
	one  [1]byte
	n    int
	err  error
}

// NewPeeker returns a Peeker for c, or nil if c is closed or does not support non-blocking reads.
func NewPeeker(c net.Conn) *Peeker {
	file, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	p := &Peeker{raw: raw}
	p.look = func(fd uintptr) bool {
		p.n, p.err = syscall.Read(int(fd), p.one[:])
		return true
	}
	return p
}

// Alive reports whether the connection is open and has no data to read. It returns true for a nil Peeker. It consumes a
// byte of any data, so the connection must then be closed.
func (p *Peeker) Alive() bool {
	return p == nil || p.raw.Read(p.look) == nil && p.n <= 0 &&
		(errors.Is(p.err, syscall.EAGAIN) || errors.Is(p.err, syscall.EWOULDBLOCK))
}
