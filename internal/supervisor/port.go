package supervisor

import (
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
	// portPatience is how long a taken port is waited for: its holder may be
	// what was just told to end.
	portPatience = 2 * time.Second
	// portInterval is the time between two looks at it.
	portInterval = 100 * time.Millisecond
)

// The ports that [FreePort] chooses from: above those of well-known services, and
// below those that systems give to connections, so that no connection takes it
// before the app does.
const firstFreePort, lastFreePort = 20_000, 29_999

// FreePort returns a port, 20000 to 29999, on which nobody listens at this moment.
func FreePort() (int, error) {
	for range 100 {
		if port := firstFreePort + rand.IntN(lastFreePort-firstFreePort+1); !portTaken(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("100 ports from %d to %d were tried: none is free",
		firstFreePort, lastFreePort)
}

// PortError says that a process was not started because its port is taken:
// what answers there is not the app.
type PortError struct {
	Process string
	Port    int
	// Holder names the program that listens there, as "nginx (pid 123)"; ""
	// when it could not be found out.
	Holder string
}

// Error says who holds the port and what to do.
func (e *PortError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("port %d, where %s is to listen, is already in use by another program: stop that program, or "+
			"choose another port",
			e.Port, e.Process)
	}
	return fmt.Sprintf("port %d, where %s is to listen, is already in use by %s: stop that program, or choose another "+
		"port",
		e.Port, e.Process, e.Holder)
}

// CheckPort returns a [*PortError] when the port on which a process is to listen is
// taken at this moment.
func CheckPort(process string, port int) error {
	if portTaken(port) {
		return &PortError{Process: process, Port: port, Holder: portHolder(port)}
	}
	return nil
}

// portTaken reports whether somebody listens where the app is to be reached. It
// binds and lets go again, which disturbs nobody.
func portTaken(port int) bool {
	for _, at := range []struct{ network, address string }{{"tcp4", "127.0.0.1"}, {"tcp6", "::1"}} {
		ln, err := net.Listen(at.network, net.JoinHostPort(at.address, strconv.Itoa(port)))
		if err == nil {
			_ = ln.Close()
			continue
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return true
		}
		// No such address, or a port that only the app may bind: it will tell.
	}
	return wildcardTaken(port)
}

// awaitPort returns nil once port is free, and a *PortError when it is not
// within portPatience. taken says whether it is.
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
