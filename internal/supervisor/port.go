package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"
)

const (
	// portPatience gives a stopping holder of the port time to exit.
	portPatience = 2 * time.Second
	portInterval = 100 * time.Millisecond
)

// These ports are below Linux's default ephemeral ports, so that no outgoing connection takes one before the app does.
const firstFreePort, lastFreePort = 20_000, 29_999

// FreePort returns a port from 20000 to 29999 that is currently free.
func FreePort() (int, error) {
	for range 100 {
		if port := firstFreePort + rand.IntN(lastFreePort-firstFreePort+1); !PortTaken(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port among the 100 tried from %d to %d",
		firstFreePort, lastFreePort)
}

// PortError reports that a port is taken by another program.
type PortError struct {
	Process string
	Port    int
	// Holder is text such as "nginx (pid 123)"; may be "".
	Holder string
}

// Error describes the conflict and how to resolve it.
func (e *PortError) Error() string {
	return fmt.Sprintf("port %d of %s is already in use by %s: stop that program, or choose another port",
		e.Port, e.Process, cmp.Or(e.Holder, "another program"))
}

// CheckPort returns a [*PortError] if another program uses the port.
func CheckPort(process string, port int) error {
	if PortTaken(port) {
		return &PortError{Process: process, Port: port, Holder: portHolder(port)}
	}
	return nil
}

// PortTaken reports whether a program uses the port. It binds the port for a moment.
func PortTaken(port int) bool {
	for _, at := range []struct{ network, address string }{{"tcp4", "127.0.0.1"}, {"tcp6", "::1"}} {
		ln, err := net.Listen(at.network, net.JoinHostPort(at.address, strconv.Itoa(port)))
		if err == nil {
			_ = ln.Close()
			continue
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return true
		}
		// The address does not exist, or only the app, which reports its own errors, may bind the port.
	}
	return wildcardTaken(port)
}

func awaitPort(ctx context.Context, p *Process, taken func(int) bool) error {
	if p.Port == 0 {
		return nil
	}
	deadline := time.Now().Add(portPatience)
	for taken(p.Port) {
		if time.Now().After(deadline) {
			return &PortError{Process: p.Name, Port: p.Port, Holder: portHolder(p.Port)}
		}
		select {
		case <-time.After(portInterval):
		case <-ctx.Done():
			return errors.New("the supervisor is stopping")
		}
	}
	return nil
}
