package httplimit

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// An idle connection younger than grace may be about to send a request.
const grace = 100 * time.Millisecond

// Limits are the limits of an HTTP server.
type Limits struct {
	// Connections is the maximum number of connections. One remote address may use half of them.
	Connections int
	// Bodies limits the memory of request bodies; nil if the server limits them itself.
	Bodies *Bodies
	// Anonymous reports whether a request lacks valid credentials; nil if none are required.
	Anonymous func(*http.Request) bool
	// Probe reports whether a request is a probe; may be nil. If set, a quarter of the connections is reserved for
	// probes, which also do not count as anonymous requests.
	Probe func(*http.Request) bool
	// Full is called when a new connection exceeds a limit; may be nil.
	Full func()
}

type listener struct {
	net.Listener
	limits   Limits
	requests http.Handler
	failed   *log.Logger

	inProgress atomic.Int64 // except probes
	anonymous  atomic.Int64 // except probes
	waiting    atomic.Bool

	closed  context.Context
	end     context.CancelFunc
	changed chan struct{} // receives a token when a connection becomes idle or ends

	mu    sync.Mutex
	conns map[*connection]bool
	idle  list.List
	peers map[netip.Addr]int
}

type connection struct {
	net.Conn
	framing framing
	served  int64
	state   *tls.ConnectionState // nil without TLS and until the handshake is complete
	failed  *log.Logger

	element *list.Element // in idle; nil during a request
	since   time.Time
	givenUp atomic.Bool // closed for another connection; requests get no response
}

func (c *connection) Read(p []byte) (int, error) {
	if encrypted, ok := c.Conn.(*tls.Conn); ok && c.state == nil {
		if err := c.handshake(encrypted); err != nil {
			return 0, io.EOF // the server would respond to other errors
		}
	}
	n, err := c.Conn.Read(p)
	c.framing.follow(p[:n])
	return n, err
}

func (c *connection) handshake(encrypted *tls.Conn) error {
	if err := encrypted.Handshake(); err != nil {
		if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil {
			_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis port takes HTTPS requests only.\n")
		}
		if c.failed != nil {
			c.failed.Printf("http: TLS handshake error from %s: %v", c.RemoteAddr(), err)
		}
		return err
	}
	state := encrypted.ConnectionState()
	c.state = &state
	return nil
}

func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connectionKey struct{}

// Listen returns a listener that enforces limits on l, whose connections may be *tls.Conn. It wraps the server's Handler
// and ConnContext, and replaces its ConnState.
func Listen(server *http.Server, l net.Listener, limits Limits) net.Listener {
	limited := &listener{Listener: l, limits: limits, failed: server.ErrorLog, changed: make(chan struct{}, 1),
		conns: map[*connection]bool{}, peers: map[netip.Addr]int{}}
	limited.closed, limited.end = context.WithCancel(context.Background())
	if limited.limits.Full == nil {
		limited.limits.Full = func() {}
	}

	limited.requests = server.Handler
	if limits.Bodies != nil {
		limited.requests = limits.Bodies.Handler(server.Handler)
	}
	server.Handler = limited
	server.DisableGeneralOptionsHandler = true // so that "OPTIONS *" requests count too

	inner := server.ConnContext
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, conn)
		}
		limited.add(conn.(*connection))
		return context.WithValue(ctx, connectionKey{}, conn)
	}
	server.ConnState = limited.track
	return limited
}

// Accept waits until the next connection can be served. It closes connections from an address that has used up its
// share.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.acceptWithinShare()
	if err != nil {
		return nil, err
	}
	if wait := l.makeRoom(); wait > 0 && !l.awaitRoom(wait) {
		conn.Close()
		return nil, net.ErrClosed
	}
	return &connection{Conn: conn, failed: l.failed}, nil
}

func (l *listener) acceptWithinShare() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.makeRoomForPeer(conn) {
			return conn, err
		}
		l.limits.Full()
		conn.Close()
	}
}

// awaitRoom calls makeRoom again after wait, or when a connection becomes idle or ends. Meanwhile, responses ask
// clients to close their connections, so that none is closed with a request in transit. ok is false if the listener is
// closed.
func (l *listener) awaitRoom(wait time.Duration) (ok bool) {
	l.limits.Full()
	l.waiting.Store(true)
	defer l.waiting.Store(false)
	for wait > 0 {
		timer := time.NewTimer(wait)
		select {
		case <-l.changed:
		case <-timer.C:
		case <-l.closed.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
		wait = l.makeRoom()
	}
	return true
}

// makeRoom closes the longest idle connection if necessary. wait is 0, or the time until a connection may be closed.
func (l *listener) makeRoom() (wait time.Duration) {
	closing, wait := l.giveUpLongestIdle()
	if closing != nil {
		l.limits.Full()
		closeAtOnce(closing)
	}
	return wait
}

func (l *listener) giveUpLongestIdle() (closing net.Conn, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) < l.limits.Connections {
		return nil, 0
	}

	oldest := l.idle.Front()
	if oldest == nil {
		return nil, time.Hour // until a connection becomes idle or ends
	}
	if wait = grace - time.Since(oldest.Value.(*connection).since); wait > 0 {
		return nil, wait
	}
	return l.giveUp(oldest), 0
}

func (l *listener) makeRoomForPeer(conn net.Conn) bool {
	peer, isRemote := peerOf(conn)
	if !isRemote {
		return true
	}
	closing, ok := l.giveUpOfPeer(peer)
	if closing != nil {
		closeAtOnce(closing)
	}
	return ok
}

func (l *listener) giveUpOfPeer(peer netip.Addr) (closing net.Conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peers[peer] < max(l.limits.Connections/2, 1) {
		return nil, true
	}
	for idle := l.idle.Front(); idle != nil; idle = idle.Next() {
		if of, _ := peerOf(idle.Value.(*connection)); of == peer {
			return l.giveUp(idle), true
		}
	}
	return nil, false
}

// giveUp returns a connection that the caller must close. l.mu must be held.
func (l *listener) giveUp(idle *list.Element) net.Conn {
	c := l.idle.Remove(idle).(*connection)
	c.givenUp.Store(true)
	l.forget(c)
	return c.Conn
}

func (l *listener) forget(c *connection) {
	delete(l.conns, c)
	l.addToPeer(c, -1)
}

func closeAtOnce(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // closing a TLS connection may wait for the client
	}
	conn.Close()
}

// l.mu must be held.
func (l *listener) addToPeer(conn net.Conn, connections int) {
	peer, isRemote := peerOf(conn)
	if !isRemote {
		return
	}
	l.peers[peer] += connections
	if l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

func peerOf(conn net.Conn) (peer netip.Addr, isRemote bool) {
	from, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return peer, false
	}
	peer = from.AddrPort().Addr().Unmap()
	return peer, !peer.IsLoopback()
}

func (l *listener) add(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	l.addToPeer(c, 1)
	c.since = time.Now()
	c.element = l.idle.PushBack(c)
}

// The server calls track before the handler, so a connection that reaches the handler is either in use or given up.
func (l *listener) track(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := conn.(*connection)
	if !l.conns[c] || state == http.StateNew {
		return
	}

	if c.element != nil {
		l.idle.Remove(c.element)
		c.element = nil
	}

	switch state {
	case http.StateActive:
		return
	case http.StateIdle:
		c.since = time.Now()
		c.element = l.idle.PushBack(c)
	default:
		l.forget(c)
	}

	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *listener) Close() error {
	l.end()
	return l.Listener.Close()
}
