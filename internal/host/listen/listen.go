package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// ErrInUse means that something listens there already.
var ErrInUse = errors.New("is in use")

// ErrReachable means that other machines reach an address that was to be local.
var ErrReachable = errors.New("not a local address")

// TCP listens on an address. With localOnly it must be one that only this machine reaches, else the error is
// [ErrReachable]: a name may stand for another address than it says.
func TCP(address string, localOnly bool) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: the port %w; stop what listens there, or give another port (0 takes any free one)",
			address, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if bound := Address(l); localOnly && !bound.Addr().IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("%s: %w: the name resolves to %s, which other machines can reach; "+
			"write 127.0.0.1:%d", address,
			ErrReachable, bound.Addr(), bound.Port())
	}
	return l, nil
}

// Address is where a listener of TCP is bound.
func Address(l net.Listener) netip.AddrPort {
	bound := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
}

// Local is the address at which this machine reaches a listener of TCP: that of loopback where it is bound to every
// address.
func Local(l net.Listener) string {
	bound := Address(l)
	if bound.Addr().IsUnspecified() {
		bound = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), bound.Port())
	}
	return bound.String()
}

// Unix makes a socket for its owner and the group of its folder. One that nobody serves any more is replaced; one that
// is served is [ErrInUse].
// It gets its name when its permissions are set, so that nobody else can connect before.
func Unix(path string) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		return nil, fmt.Errorf("unix:%s: %w", path, err)
	}

	// The socket is made under a shorter name, which would hide that nobody can connect to this one.
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return fail(fmt.Errorf("the path has %d bytes, and a socket's at most %d; name a shorter one", len(path), most))
	}

	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return fail(errors.New("something else than a socket is there; remove it, or name another path"))
		}
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("unix:%s: the socket %w; stop the process that serves it, or name another path", path,
				ErrInUse)
		}
	}

	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)

	hidden := filepath.Join(dir, "s")
	l, err := net.Listen("unix", hidden)
	if err != nil {
		return fail(err)
	}

	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Chmod(hidden, 0o660); err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		l.Close()
		return fail(err)
	}
	return socketListener{l, path}, nil
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	net.Listener
	path string
}

// Close stops listening.
func (l socketListener) Close() error {
	return errors.Join(os.Remove(l.path), l.Listener.Close())
}

// CloseAll closes listeners.
func CloseAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Merge returns a listener that accepts what any of the given ones accepts and has the address of the first. Closing
// it closes them.
func Merge(listeners []net.Listener) net.Listener {
	if len(listeners) == 1 {
		return listeners[0]
	}
	m := &merged{listeners: listeners, accepted: make(chan acceptance), closed: make(chan struct{})}
	for _, l := range listeners {
		go m.accept(l)
	}
	return m
}

// merged accepts the connections of several listeners.
type merged struct {
	listeners []net.Listener
	accepted  chan acceptance
	closed    chan struct{}
	closeOnce sync.Once
}

type acceptance struct {
	conn net.Conn
	err  error
}

func (m *merged) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		select {
		case m.accepted <- acceptance{conn, err}:
		case <-m.closed:
			if err == nil {
				conn.Close()
			}
			return
		}
	}
}

// Accept waits for a connection.
func (m *merged) Accept() (net.Conn, error) {
	select {
	case a := <-m.accepted:
		return a.conn, a.err
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close closes all listeners; it may be called twice.
func (m *merged) Close() (err error) {
	m.closeOnce.Do(func() {
		close(m.closed)
		err = CloseAll(m.listeners)
	})
	return err
}

// Addr is that of the first.
func (m *merged) Addr() net.Addr { return m.listeners[0].Addr() }
