package httplimit

import (
	"container/list"
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

	closing sync.Once
	closed  chan struct{}
	changed chan struct{} // holds a token when a connection has become idle or ended

	mu    sync.Mutex
	conns map[net.Conn]*list.Element // in idle; nil for one with a request
	idle  list.List                  // of net.Conn, the longest idle first
}

// Listen returns l with at most so many connections, one more while it is
// decided about; server must serve it and nothing else. It takes the server's
// ConnState. full is called when there is no room for a new connection.
func Listen(server *http.Server, l net.Listener, most int, full func()) net.Listener {
	limited := &listener{
		Listener: l, most: most, full: full,
		closed: make(chan struct{}), changed: make(chan struct{}, 1), conns: map[net.Conn]*list.Element{},
	}
	server.ConnState = limited.track
	return limited
}

// Accept returns the next connection as soon as there is room for it.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for reported := false; !l.makeRoom(); {
		if !reported {
			l.full()
			reported = true
		}
		select {
		case <-l.changed:
		case <-l.closed:
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
	room := len(l.conns) < l.most
	var victim net.Conn
	if oldest := l.idle.Front(); !room && oldest != nil {
		victim = l.idle.Remove(oldest).(net.Conn)
		delete(l.conns, victim)
	}
	l.mu.Unlock()
	if victim == nil {
		return room
	}
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
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
