package httplimit

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

type foreign struct {
	net.Conn
	from net.IP
}

func (c *foreign) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.from, Port: 1} }

type foreignListener struct {
	net.Listener
	from chan net.IP
}

func (l foreignListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &foreign{conn, <-l.from}, nil
}

func TestOneMachineLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			entered <- struct{}{}
			<-leave
		}
		fmt.Fprint(w, "ok")
	}))
	from := make(chan net.IP, 1)
	var full atomic.Int64
	s.Listener = Listen(s.Config, foreignListener{s.Listener, from}, Limits{Connections: 4, Full: func() { full.Add(1) }})
	s.Start()
	defer s.Close()
	defer close(leave)
	open := func(ip net.IP, path string) net.Conn {
		from <- ip
		conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		return conn
	}
	answered := func(conn net.Conn) bool {
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil && r.StatusCode == http.StatusOK
	}
	greedy, other := net.IPv4(10, 0, 0, 1), net.IPv4(10, 0, 0, 2)
	for range 2 {
		open(greedy, "/wait")
		<-entered
	}
	if answered(open(greedy, "/")) {
		t.Error("a third connection of one machine is served, with two of four in use")
	}
	if full.Load() != 1 {
		t.Errorf("told %d times that there is no room, want 1", full.Load())
	}
	if !answered(open(other, "/")) {
		t.Error("another machine is not served")
	}
	for range 2 {
		if !answered(open(other, "/")) {
			t.Error("idle connections of a machine do not give way to its new ones")
		}
	}
	if !answered(open(net.IPv4(127, 0, 0, 1), "/")) {
		t.Error("this machine is not served")
	}
}
