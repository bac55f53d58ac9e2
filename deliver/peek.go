package deliver

import (
	"errors"
	"net"
	"syscall"
)

// peeker looks whether a connection that should be silent is.
type peeker struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool
	one  [1]byte
	n    int
	err  error
}

// newPeeker returns nil for a connection that has no file descriptor.
func newPeeker(c net.Conn) *peeker {
	sys, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return nil
	}
	p := &peeker{raw: raw}
	p.look = func(fd uintptr) bool {
		p.n, p.err = syscall.Read(int(fd), p.one[:])
		return true // never wait
	}
	return p
}

// quiet reports whether nothing can be read: no byte, no end, no error. A byte
// that is there is lost, so that the connection must be closed.
func (p *peeker) quiet() bool {
	if p.raw.Read(p.look) != nil {
		return false
	}
	return p.n <= 0 && (errors.Is(p.err, syscall.EAGAIN) || errors.Is(p.err, syscall.EWOULDBLOCK))
}
