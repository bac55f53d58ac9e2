package httplimit

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// listener bounds the connections of one server.
type listener struct {
	net.Listener
	most int
	full func()

	closed  context.Context
	end     context.CancelFunc
	changed chan struct{} // holds a token when a connection has become idle or ended

	mu    sync.Mutex
	conns map[net.Conn]*list.Element // in idle; nil for one with a request
	idle  list.List                  // of net.Conn, the longest idle first
	peers map[netip.Addr]int         // connections of each other machine
}

// Listen returns l with at most so many connections, one more while it is decided about, and at
// most half of them of one other machine; server, whose ConnState it takes, must serve it and
// nothing else. full is called when there is no room for a new connection.
func Listen(server *http.Server, l net.Listener, most int, full func()) net.Listener {
	limited := &listener{Listener: l, most: most, full: full, changed: make(chan struct{}, 1),
		conns: map[net.Conn]*list.Element{}, peers: map[netip.Addr]int{}}
	limited.closed, limited.end = context.WithCancel(context.Background())
	server.ConnState = limited.track
	return limited
}

// Accept waits until there is room for the next connection. One of a machine that has its part already, all of it in
// use, is closed.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	for ; err == nil && !l.makeRoomOf(conn); conn, err = l.Listener.Accept() {
		l.full()
		conn.Close()
	}
	if err != nil {
		return nil, err
	}
	for first := true; !l.makeRoom(); first = false {
		if first {
			l.full()
		}
		select {
		case <-l.changed:
		case <-l.closed.Done():
			conn.Close()
			return nil, net.ErrClosed
		}
	}
	return conn, nil
}

// makeRoom reports whether one more connection may be served, and closes the
// longest idle one for it where need be.
func (l *listener) makeRoom() bool {
	l.mu.Lock()
	oldest := l.idle.Front()
	if room := len(l.conns) < l.most; room || oldest == nil {
		l.mu.Unlock()
		return room
	}
	victim := l.forget(oldest)
	l.mu.Unlock()
	l.full()
	end(victim)
	return true
}

// makeRoomOf reports whether the machine that a connection comes from may have one more, and closes its longest idle
// one where need be. This machine, which all its users share, may have them all.
func (l *listener) makeRoomOf(conn net.Conn) bool {
	peer, other := peerOf(conn)
	if !other {
		return true
	}
	l.mu.Lock()
	if l.peers[peer] < max(l.most/2, 1) {
		l.mu.Unlock()
		return true
	}
	oldest := l.idle.Front()
	for ; oldest != nil; oldest = oldest.Next() {
		if of, _ := peerOf(oldest.Value.(net.Conn)); of == peer {
			break
		}
	}
	if oldest == nil {
		l.mu.Unlock()
		return false
	}
	victim := l.forget(oldest)
	l.mu.Unlock()
	end(victim)
	return true
}

// forget takes an idle connection away, which is then to be ended; the caller holds the lock.
func (l *listener) forget(idle *list.Element) net.Conn {
	conn := l.idle.Remove(idle).(net.Conn)
	delete(l.conns, conn)
	l.count(conn, -1)
	return conn
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

// track follows what becomes of the connections. One that was closed for
// another is not known any more.
func (l *listener) track(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	element, known := l.conns[conn]
	if !known && state != http.StateNew {
		return
	}
	if element != nil {
		l.idle.Remove(element)
	}
	if !known {
		l.count(conn, 1)
	}
	switch state {
	case http.StateNew, http.StateIdle:
		l.conns[conn] = l.idle.PushBack(conn)
	case http.StateActive:
		l.conns[conn] = nil
		return
	default:
		delete(l.conns, conn)
		l.count(conn, -1)
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
