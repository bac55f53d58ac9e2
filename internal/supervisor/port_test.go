package supervisor

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tendril/internal/testing/testpeer"
)

func TestPortTaken(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("SKIPPED %s: %v", address, err)
			continue
		}
		if port := ln.Addr().(*net.TCPAddr).Port; !PortTaken(port) {
			t.Errorf("the port of a listener on %s counts as free", address)
		}
		ln.Close()
	}
}

func TestPortErrorSuggestsASolution(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  PortError
		want string
	}{
		{PortError{"web", 5000, "nginx (pid 7)"},
			"port 5000 of web is already in use by nginx (pid 7): stop that program, or choose another port"},
		{PortError{"web", 5000, ""},
			"port 5000 of web is already in use by another program: stop that program, or choose another " +
				"port"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("error %q, want %q", got, tt.want)
		}
	}
}

func TestFreePort(t *testing.T) {
	t.Parallel()
	seen, taken := map[int]bool{}, 0
	for range 50 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		seen[port] = true
		if port < 20_000 || port > 29_999 {
			t.Errorf("port %d is out of range", port)
		}
		if PortTaken(port) {
			taken++
		}
	}
	if taken > 2 {
		t.Errorf("%d of 50 ports were taken", taken)
	}
	if len(seen) < 10 {
		t.Errorf("only %d different ports in 50: two who ask at once should not get the same", len(seen))
	}
}

func TestPortHolder(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	// A process that another test is starting holds a copy of the listener until its exec.
	syscall.ForkLock.RLock()
	holder := portHolder(ln.Addr().(*net.TCPAddr).Port)
	syscall.ForkLock.RUnlock()
	if holder == "" {
		t.Skip("SKIPPED: the holder of a port cannot be seen here")
	}
	if !strings.HasSuffix(holder, "(pid "+strconv.Itoa(os.Getpid())+")") {
		t.Errorf("holder %q, want this process, %d", holder, os.Getpid())
	}
	_, bound := testpeer.BoundSocket(t)
	if holder := portHolder(bound); holder != "" {
		t.Errorf("a port on which nobody listens is held by %q", holder)
	}
}
