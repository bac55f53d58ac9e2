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

// grace is how long a connection may be idle before it is closed for a new one. A client that has just connected, or
// has just been answered, is about to send its next request.
const grace = 100 * time.Millisecond

// Limits bound what the clients of one server can occupy.
type Limits struct {
	// Connections is the most connections at once, one more while it is decided about. One other machine may have half.
	Connections int
	// Bodies bounds the bytes of request bodies; nil if the server bounds them itself.
	Bodies *Bodies
	// Anonymous reports whether the header of a request lacks valid credentials; nil if callers need none.
	Anonymous func(*http.Request) bool
	// Probe reports whether a request is answered however many anonymous ones wait. Its answer must be short.
	Probe func(*http.Request) bool
	// Full is called when there is no room for a new connection; it may be nil.
	Full func()
}

// listener bounds the connections of one server.
type listener struct {
	net.Listener
	limits   Limits
	requests http.Handler

	anonymous atomic.Int64 // anonymous requests being answered
	waiting   atomic.Bool  // a new connection waits for room

	closed  context.Context
	end     context.CancelFunc
	changed chan struct{} // holds a token when a connection has become idle or ended

	mu    sync.Mutex
	conns map[net.Conn]*connection
	idle  list.List          // of *connection, the longest idle first
	peers map[netip.Addr]int // connections of each other machine
}

// connection is one of the server's.
type connection struct {
	net.Conn
	element *list.Element // in idle; nil while a request is being answered
	since   time.Time     // when it became idle
	givenUp atomic.Bool   // it was closed for another one: its requests are not answered any more
}

// connectionKey is the key of the connection in the context of its requests.
type connectionKey struct{}

// Listen returns l within limits. It takes the server's Handler, ConnState and ConnContext; the server must serve the
// listener and nothing else.
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

// Accept waits until there is room for the next connection. One of a machine that has its part already, all of it in
// use, is closed.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	for ; err == nil && !l.makeRoomOf(conn); conn, err = l.Listener.Accept() {
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

// awaitRoom waits for room, first for the given time; false if the listener is closed before. Meanwhile answers ask
// clients to close their connections, so that none is closed while its next request is on the way.
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

// makeRoom reports whether one more connection may be served, and closes the longest idle one for it where need be.
// If not, it returns how long at least one stays in its grace, or an hour if none is idle.
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

// makeRoomOf reports whether the machine that a connection comes from may have one more, and closes its longest idle
// one where need be. This machine, which all its users share, may have them all.
func (l *listener) makeRoomOf(conn net.Conn) bool {
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

// giveUp takes an idle connection away, which is then to be ended; the caller holds the lock.
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
		conn = encrypted.NetConn() // its own Close may wait for the client
	}
	conn.Close()
}

// count notes that the machine of a connection has more or fewer of them; the caller holds the lock.
func (l *listener) count(conn net.Conn, more int) {
	peer, other := peerOf(conn)
	if !other {
		return
	}
	if l.peers[peer] += more; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

// peerOf is the address of the machine that a connection comes from; false for this one.
func peerOf(conn net.Conn) (peer netip.Addr, other bool) {
	from, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return peer, false
	}
	peer = from.AddrPort().Addr().Unmap()
	return peer, !peer.IsLoopback()
}

// add makes a connection known, which is idle until its first request.
func (l *listener) add(conn net.Conn) *connection {
	c := &connection{Conn: conn, since: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = c
	l.count(conn, 1)
	c.element = l.idle.PushBack(c)
	return c
}

// track follows what becomes of the connections. The server calls it before it calls the handler: a connection is in
// use from then on, or was given up already.
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

// Close ends Accept too where it waits for room.
func (l *listener) Close() error {
	l.end()
	return l.Listener.Close()
}
