package httplimit

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// grace is how long a connection must be idle before it can be closed. Until then the client is about to send its
// next request.
const grace = 100 * time.Millisecond

// Limits are the limits of one server.
type Limits struct {
	// Connections is the maximum number of connections. A remote machine may hold half of them.
	Connections int
	// Bodies limits the memory of request bodies. It is nil if the server does so itself.
	Bodies *Bodies
	// Anonymous reports whether a request's headers lack valid credentials. It is nil if callers need none.
	Anonymous func(*http.Request) bool
	// Probe reports whether a request is exempt from the limit on anonymous requests.
	Probe func(*http.Request) bool
	// Full is called when there is no room for a new connection. It may be nil.
	Full func()
}

type listener struct {
	net.Listener
	limits   Limits
	requests http.Handler

	anonymous atomic.Int64 // anonymous requests in progress
	waiting   atomic.Bool  // a new connection is waiting for room

	closed  context.Context
	end     context.CancelFunc
	changed chan struct{} // holds a token after a connection became idle or ended

	mu    sync.Mutex
	conns map[net.Conn]*connection
	idle  list.List          // of *connection, longest idle first
	peers map[netip.Addr]int // connections per remote machine
}

type connection struct {
	net.Conn
	element *list.Element // in idle; nil while a request is in progress
	since   time.Time     // start of the idle period
	givenUp atomic.Bool   // closed for another connection; further requests are not answered
}

type connectionKey struct{}

// Listen wraps l with limits. It replaces the server's Handler, ConnState and ConnContext.
func Listen(server *http.Server, l net.Listener, limits Limits) net.Listener {
	limited := &listener{Listener: l, limits: limits, changed: make(chan struct{}, 1),
		conns: map[net.Conn]*connection{}, peers: map[netip.Addr]int{}}
	limited.closed, limited.end = context.WithCancel(context.Background())
	if limited.limits.Full == nil {
		limited.limits.Full = func() {}
	}

	limited.requests = server.Handler
	if limits.Bodies != nil {
		limited.requests = limits.Bodies.Handler(server.Handler)
	}
	server.Handler = limited

	inner := server.ConnContext
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, conn)
		}
		return context.WithValue(ctx, connectionKey{}, limited.add(conn))
	}
	server.ConnState = limited.track
	return limited
}

// Accept waits until there is room for the next connection. It closes connections of machines that use their whole
// share.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	for ; err == nil && !l.makeRoomForPeer(conn); conn, err = l.Listener.Accept() {
		l.limits.Full()
		conn.Close()
	}
	if err != nil {
		return nil, err
	}
	if ok, wait := l.makeRoom(); !ok && !l.awaitRoom(wait) {
		conn.Close()
		return nil, net.ErrClosed
	}
	return conn, nil
}

// awaitRoom waits for room, initially for the given time, and returns false if the listener is closed. Meanwhile
// responses ask clients to close, so that no connection is closed while its next request is in transit.
func (l *listener) awaitRoom(wait time.Duration) (ok bool) {
	l.limits.Full()
	l.waiting.Store(true)
	defer l.waiting.Store(false)
	for !ok {
		timer := time.NewTimer(wait)
		select {
		case <-l.changed:
		case <-timer.C:
		case <-l.closed.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
		ok, wait = l.makeRoom()
	}
	return true
}

// makeRoom reports whether another connection may be served, closing the longest idle one if necessary. Otherwise it
// returns how long to wait for the oldest idle connection.
func (l *listener) makeRoom() (ok bool, wait time.Duration) {
	l.mu.Lock()
	if len(l.conns) < l.limits.Connections {
		l.mu.Unlock()
		return true, 0
	}
	oldest := l.idle.Front()
	if oldest == nil {
		l.mu.Unlock()
		return false, time.Hour
	}
	if wait = grace - time.Since(oldest.Value.(*connection).since); wait > 0 {
		l.mu.Unlock()
		return false, wait
	}
	victim := l.giveUp(oldest)
	l.mu.Unlock()
	l.limits.Full()
	end(victim)
	return true, 0
}

// makeRoomForPeer does the same for the connection's machine. The local machine has no limit of its own.
func (l *listener) makeRoomForPeer(conn net.Conn) bool {
	peer, other := peerOf(conn)
	if !other {
		return true
	}

	l.mu.Lock()
	if l.peers[peer] < max(l.limits.Connections/2, 1) {
		l.mu.Unlock()
		return true
	}

	oldest := l.idle.Front()
	for ; oldest != nil; oldest = oldest.Next() {
		if of, _ := peerOf(oldest.Value.(*connection)); of == peer {
			break
		}
	}
	if oldest == nil {
		l.mu.Unlock()
		return false
	}

	victim := l.giveUp(oldest)
	l.mu.Unlock()
	end(victim)
	return true
}

// giveUp removes an idle connection, which the caller then closes. The caller holds the lock.
func (l *listener) giveUp(idle *list.Element) net.Conn {
	c := l.idle.Remove(idle).(*connection)
	c.givenUp.Store(true)
	l.forget(c)
	return c.Conn
}

func (l *listener) forget(c *connection) {
	delete(l.conns, c.Conn)
	l.count(c.Conn, -1)
}

func end(conn net.Conn) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // Close of a TLS connection may wait for the client
	}
	conn.Close()
}

// count requires the lock.
func (l *listener) count(conn net.Conn, more int) {
	peer, other := peerOf(conn)
	if !other {
		return
	}
	if l.peers[peer] += more; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

func peerOf(conn net.Conn) (peer netip.Addr, other bool) {
	from, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return peer, false
	}
	peer = from.AddrPort().Addr().Unmap()
	return peer, !peer.IsLoopback()
}

func (l *listener) add(conn net.Conn) *connection {
	c := &connection{Conn: conn, since: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = c
	l.count(conn, 1)
	c.element = l.idle.PushBack(c)
	return c
}

// track follows the state of connections. The server calls it before the handler, so from then on a connection is
// either in use or already given up.
func (l *listener) track(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[conn]
	if c == nil || state == http.StateNew {
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

// Close also ends an Accept that is waiting for room.
func (l *listener) Close() error {
	l.end()
	return l.Listener.Close()
}
