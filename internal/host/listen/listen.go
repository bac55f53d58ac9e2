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

// ErrInUse means that another process listens at the address.
var ErrInUse = errors.New("is in use")

// ErrReachable means that other machines can reach an address meant to be local.
var ErrReachable = errors.New("not a local address")

// TCP listens on an address. With localOnly, it returns [ErrReachable] if other machines can reach it.
func TCP(address string, localOnly bool) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: the port %w; stop the process that listens on it, or use another port (0 selects "+
			"a free one)", address, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if bound := Address(l); localOnly && !bound.Addr().IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("%s: %w: the name resolves to %s, which other machines can reach; use 127.0.0.1:%d", address,
			ErrReachable, bound.Addr(), bound.Port())
	}
	return l, nil
}

// Address returns the address that a TCP listener listens on.
func Address(l net.Listener) netip.AddrPort {
	bound := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
}

// Local returns an address at which local processes can reach a TCP listener.
func Local(l net.Listener) string {
	bound := Address(l)
	if bound.Addr().IsUnspecified() {
		bound = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), bound.Port())
	}
	return bound.String()
}

// Reachable returns an address at which other machines can reach a TCP listener, if possible. For a listener on all
// addresses, it is the source address of packets to other networks or, without a route, the machine's first address
// that is neither loopback nor link-local, which may be private.
func Reachable(l net.Listener) string {
	bound := Address(l)
	if !bound.Addr().IsUnspecified() {
		return bound.String()
	}
	own := sourceAddress()
	if !own.IsValid() {
		addresses, _ := net.InterfaceAddrs()
		own = firstGlobalUnicast(addresses)
	}
	if !own.IsValid() {
		return Local(l)
	}
	return netip.AddrPortFrom(own, bound.Port()).String()
}

func sourceAddress() netip.Addr {
	for _, elsewhere := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // documentation addresses
		conn, err := net.Dial("udp", elsewhere) // sends no packet
		if err != nil {
			continue
		}
		defer conn.Close()
		return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

func firstGlobalUnicast(addresses []net.Addr) netip.Addr {
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().Unmap().IsGlobalUnicast() {
			return prefix.Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// Unix creates a socket with mode 0660, replacing a stale one. If a process serves the socket, it returns [ErrInUse].
func Unix(path string) (net.Listener, error) {
	err := checkSocketPath(path)
	var l net.Listener
	if err == nil {
		l, err = createSocket(path)
	}
	if err != nil {
		return nil, fmt.Errorf("unix:%s: %w", path, err)
	}
	return socketListener{l, path}, nil
}

func checkSocketPath(path string) error {
	// The socket is created under a shorter, temporary name, which succeeds even if the path is too long for clients.
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return fmt.Errorf("the path has %d bytes, but a socket path at most %d; use a shorter one", len(path), most)
	}

	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSocket == 0 {
		return errors.New("a file other than a socket exists there; remove it, or use another path")
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return fmt.Errorf("the socket %w; stop the process that serves it, or use another path", ErrInUse)
	}
	return nil
}

func createSocket(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	hidden := filepath.Join(dir, "s")
	l, err := net.Listen("unix", hidden)
	if err != nil {
		return nil, err
	}

	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Chmod(hidden, 0o660); err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

type socketListener struct {
	net.Listener
	path string
}

func (l socketListener) Close() error {
	return errors.Join(os.Remove(l.path), l.Listener.Close())
}

// CloseAll closes all listeners and joins their errors.
func CloseAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Merge returns a listener that accepts the connections of all listeners. It has the address of the first listener.
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

func (m *merged) Accept() (net.Conn, error) {
	select {
	case a := <-m.accepted:
		return a.conn, a.err
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *merged) Close() (err error) {
	m.closeOnce.Do(func() {
		close(m.closed)
		err = CloseAll(m.listeners)
	})
	return err
}

func (m *merged) Addr() net.Addr { return m.listeners[0].Addr() }
