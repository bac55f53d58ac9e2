package httplimit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// newGuarded starts a server that requires the header Key. Requests to /wait block until the test ends; requests to
// /read return their body.
func newGuarded(t *testing.T, connections int) (open func(request string) net.Conn, entered chan string) {
	t.Helper()
	entered, leave := make(chan string, 100), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- r.URL.Path
		switch r.URL.Path {
		case "/wait":
			<-leave
		case "/read":
			read, err := io.Copy(w, r.Body)
			entered <- fmt.Sprint(read, err)
		}
	}))
	s.Listener = Listen(s.Config, s.Listener, Limits{
		Connections: connections,
		Bodies:      NewBodies(1<<20, 1<<20),
		Anonymous:   func(r *http.Request) bool { return r.Header.Get("Key") == "" },
		Probe:       func(r *http.Request) bool { return r.URL.Path == "/livez" },
	})
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(leave) })
	return func(request string) net.Conn {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, request)
		return conn
	}, entered
}

func statusOf(t *testing.T, conn net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestAnonymousRequestsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	open, entered := newGuarded(t, 32)
	const wait = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
	for range 32 / 8 {
		open(wait)
		<-entered
	}
	for range 100 {
		if got := statusOf(t, open(wait)); got != http.StatusServiceUnavailable {
			t.Fatalf("one more anonymous request that waits got %d", got)
		}
	}
	for _, request := range []string{
		"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nKey: 1\r\n\r\n",
	} {
		if got := statusOf(t, open(request)); got != http.StatusOK {
			t.Errorf("%q got %d", request, got)
		}
	}
}

func TestRequestsInProgressLeaveRoomForProbes(t *testing.T) {
	t.Parallel()
	open, entered := newGuarded(t, 32)
	const wait = "GET /wait HTTP/1.1\r\nHost: x\r\nKey: 1\r\n\r\n"
	for range 32 * 3 / 4 {
		open(wait)
		<-entered
	}
	for range 100 {
		if got := statusOf(t, open(wait)); got != http.StatusServiceUnavailable {
			t.Fatalf("one more request that waits got %d", got)
		}
	}
	if got := statusOf(t, open("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")); got != http.StatusOK {
		t.Errorf("a probe got %d", got)
	}
}

func TestAnonymousRequestsHaveNoBody(t *testing.T) {
	t.Parallel()
	open, entered := newGuarded(t, 8)
	conn := open("POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 65000\r\n\r\nhalf of it")
	if <-entered; <-entered != "0 <nil>" {
		t.Error("the handler got a body")
	}
	answer, err := io.ReadAll(conn)
	if err != nil || len(answer) == 0 {
		t.Errorf("answered %q, %v", answer, err)
	}
	if got := statusOf(t, open("POST /read HTTP/1.1\r\nHost: x\r\nKey: 1\r\nContent-Length: 2\r\n\r\nok")); got != 200 {
		t.Errorf("a caller with credentials got %d", got)
	}
	if <-entered; <-entered != "2 <nil>" {
		t.Error("the body of a caller with credentials did not arrive")
	}
}
