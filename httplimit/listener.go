package httplimit

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
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
}

// Listen returns l with at most so many connections, one more while it is decided about;
// server, whose ConnState it takes, must serve it and nothing else. full is called when
// there is no room for a new connection.
func Listen(server *http.Server, l net.Listener, most int, full func()) net.Listener {
	limited := &listener{Listener: l, most: most, full: full, changed: make(chan struct{}, 1),
		conns: map[net.Conn]*list.Element{}}
	limited.closed, limited.end = context.WithCancel(context.Background())
	server.ConnState = limited.track
	return limited
}

// Accept waits until there is room for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
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
	victim := l.idle.Remove(oldest).(net.Conn)
	delete(l.conns, victim)
	l.mu.Unlock()
	l.full()
	if encrypted, ok := victim.(*tls.Conn); ok {
		victim = encrypted.NetConn() // its own Close may wait for the client
	}
	victim.Close()
	return true
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
	switch state {
	case http.StateNew, http.StateIdle:
		l.conns[conn] = l.idle.PushBack(conn)
	case http.StateActive:
		l.conns[conn] = nil
		return
	default:
		delete(l.conns, conn)
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
