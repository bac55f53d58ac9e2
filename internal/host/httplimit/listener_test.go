package httplimit

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type limited struct {
	*httptest.Server
	t        *testing.T
	listener *listener
	full     atomic.Int64
	entered  chan struct{}
	leave    chan struct{}
}

func newLimited(t *testing.T, most int, encrypted bool) *limited {
	t.Helper()
	s := &limited{t: t, entered: make(chan struct{}, 100), leave: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			s.entered <- struct{}{}
			<-s.leave
		}
		fmt.Fprint(w, "ok")
	}))
	if encrypted {
		s.Listener = tls.NewListener(s.Listener, &tls.Config{Certificates: testCertificates()})
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Listener = Listen(s.Config, s.Listener, Limits{Connections: most, Full: func() { s.full.Add(1) }})
	s.listener = s.Listener.(*listener)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func testCertificates() []tls.Certificate {
	donor := httptest.NewTLSServer(http.NotFoundHandler())
	defer donor.Close()
	return donor.TLS.Certificates
}

func (s *limited) dial(encrypted bool) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if encrypted {
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	return conn
}

func (s *limited) send(conn net.Conn, path string) {
	s.t.Helper()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		s.t.Fatal(err)
	}
}

func (s *limited) answer(conn net.Conn) int {
	s.t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() {
			s.t.Fatal(err)
		}
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", encrypted), func(t *testing.T) {
			t.Parallel()
			s := newLimited(t, 4, encrypted)
			var silent []net.Conn
			for range 40 {
				silent = append(silent, s.dial(false))
			}
			for range 3 {
				conn := s.dial(encrypted)
				s.send(conn, "/")
				if got := s.answer(conn); got != http.StatusOK {
					t.Fatalf("beside silent connections: %d", got)
				}
			}
			for i, conn := range silent[:30] {
				if got := s.answer(conn); got != 0 {
					t.Errorf("silent connection %d got %d", i, got)
				}
			}
			s.listener.mu.Lock()
			defer s.listener.mu.Unlock()
			if n := len(s.listener.conns); n > 4 {
				t.Errorf("%d connections", n)
			}
			if s.full.Load() == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

func TestRequestsAreNotCutOff(t *testing.T) {
	t.Parallel()
	s := newLimited(t, 2, false)
	busy := []net.Conn{s.dial(false), s.dial(false)}
	for _, conn := range busy {
		s.send(conn, "/wait")
		<-s.entered
	}
	late := s.dial(false)
	s.send(late, "/")
	close(s.leave)
	for _, conn := range append(busy[:2:2], late) {
		if got := s.answer(conn); got != http.StatusOK {
			t.Errorf("a request was answered with %d", got)
		}
	}
}

func TestCloseEndsAWaitForRoom(t *testing.T) {
	t.Parallel()
	s := newLimited(t, 1, false)
	busy := s.dial(false)
	s.send(busy, "/wait")
	<-s.entered
	late := s.dial(false)
	for s.full.Load() == 0 {
		if _, err := late.Write([]byte{'G'}); err != nil {
			t.Fatal(err)
		}
	}
	s.Listener.Close()
	if got := s.answer(late); got != 0 {
		t.Errorf("a connection after the close got %d", got)
	}
	close(s.leave)
	if got := s.answer(busy); got != http.StatusOK {
		t.Errorf("the request in work got %d", got)
	}
}

func TestRequestOfAClosedConnectionIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	var sent atomic.Bool
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent.CompareAndSwap(false, r.URL.Path == "/send")
	})}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &limited{Server: &httptest.Server{Listener: Listen(server, tcp, Limits{Connections: 1})}, t: t}
	track, arrived, ended := server.ConnState, make(chan struct{}), make(chan struct{})
	goOn := make(chan struct{})
	var late atomic.Value
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateActive && late.CompareAndSwap(nil, conn) {
			close(arrived)
			<-goOn
		}
		track(conn, state)
		if state == http.StateClosed && conn == late.Load() {
			close(ended)
		}
	}
	go server.Serve(s.Listener)
	t.Cleanup(func() { server.Close() })

	victim := s.dial(false)
	s.send(victim, "/send")
	<-arrived
	other := s.dial(false)
	s.send(other, "/")
	if got := s.answer(other); got != http.StatusOK {
		t.Errorf("the new connection got %d", got)
	}
	close(goOn)
	<-ended
	if got := s.answer(victim); got != 0 {
		t.Errorf("the connection that was closed got %d", got)
	}
	if sent.Load() {
		t.Error("its request was carried out, and will be sent again")
	}
}

func TestClientsAreAskedToCloseForNewOnes(t *testing.T) {
	t.Parallel()
	s := newLimited(t, 1, false)
	busy := s.dial(false)
	s.send(busy, "/wait")
	s.send(busy, "/")
	<-s.entered
	late := s.dial(false)
	s.send(late, "/")
	for s.full.Load() == 0 {
		runtime.Gosched()
	}
	close(s.leave)
	answers := bufio.NewReader(busy)
	for i := range 2 {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if i == 1 && !resp.Close {
			t.Error("the client was not asked to close its connection")
		}
	}

	if got := s.answer(late); got != http.StatusOK {
		t.Errorf("the waiting connection got %d", got)
	}
	third := s.dial(false)
	s.send(third, "/")
	if got := s.answer(third); got != http.StatusOK {
		t.Errorf("a new connection got %d", got)
	}
}

func TestConnectionHasAMomentForItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := Listen(&http.Server{}, nil, Limits{Connections: 1}).(*listener)
		defer l.end()
		conn, client := net.Pipe()
		defer client.Close()
		c := &connection{Conn: conn}
		l.add(c)
		time.Sleep(grace - time.Millisecond)
		if wait := l.makeRoom(); wait != time.Millisecond {
			t.Errorf("a new connection stays for %s", wait)
		}
		l.track(c, http.StateActive)
		if wait := l.makeRoom(); wait < time.Minute {
			t.Errorf("a connection with a request stays for %s", wait)
		}
		l.track(c, http.StateIdle)
		time.Sleep(grace - time.Millisecond)
		if wait := l.makeRoom(); wait != time.Millisecond {
			t.Errorf("a connection that was just answered stays for %s", wait)
		}
		time.Sleep(time.Millisecond)
		if wait := l.makeRoom(); wait != 0 || !c.givenUp.Load() {
			t.Error("an idle connection does not give way")
		}
	})
}
