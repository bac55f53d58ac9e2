package environment

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"tendril/config"
	"tendril/httplimit"
	"tendril/logging"
)

// Bounds of what the listeners take.
const (
	// endpointBodies and consoleBodies are how many bytes of large request bodies are held at once.
	endpointBodies, consoleBodies = 32 << 20, 16 << 20
	// ownDescriptors are open without any work: files of the queues, locks, listeners, the kernel's events.
	ownDescriptors = 48
	// processDescriptors are those of one process: its output, what is watched of it, and a connection to it.
	processDescriptors = 8
	// leastConnections is what a listener takes however few descriptors there are.
	leastConnections = 8
	// fullEvery is the least time between two lines about a listener that is full.
	fullEvery = time.Minute
)

// connectionShares are the most connections of the queue endpoint and of the console. What the worker needs for
// its deliveries is reserved first, so that clients of the listeners can never take it.
func connectionShares(descriptors, deliveries int) (endpoint, console int) {
	rest := descriptors - ownDescriptors - deliveries
	return min(max(rest*3/4, leastConnections), 16384), min(max(rest/8, leastConnections), 256)
}

func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, 1<<20))
}

// deliveryDescriptors are the descriptors that the worker and the app need.
func deliveryDescriptors(s *config.Settings) int {
	perDelivery := 1 // a connection to the app
	if slices.ContainsFunc(s.Queues, runsHere) {
		perDelivery = processDescriptors
	}
	return s.HTTPConnections*perDelivery + s.ProcessesMax*processDescriptors
}

// serve runs an HTTP server until the stop reaches it, with at most so many
// connections; before is called first.
func (c *core) serve(name string, server *http.Server, l net.Listener, most int, before func()) {
	server.ErrorLog = log.New(errorLog{c.Logger.With("component", name)}, "", 0)
	full := logging.Interval{Every: fullEvery}
	l = httplimit.Listen(server, l, most, func() {
		if full.Allow() {
			c.Logger.Warn("connection limit reached, idle connections are closed for new ones",
				"component", name, "connections", most, "open_files", openFiles())
		}
	})
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.fail(fmt.Errorf("serving %s: %w", name, err))
		}
	}()
	c.steps.push(name, func(ctx context.Context) error {
		before()
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			return server.Close()
		}
		return nil
	})
}

// listen binds an address; the error names the option that gave it. With localOnly, the address must be one
// that only this machine reaches: a name may stand for another one than it says.
func listen(option, address string, localOnly bool) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, conflict{fmt.Errorf("--%s %s: the port is in use; stop what listens there, or give another port (0 "+
			"takes any free one)", option, address)}
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", option, address, err)
	}
	if bound := addressOf(l); localOnly && !bound.Addr().IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("%w: --%s %s: the name resolves to %s, which other machines can reach; write 127.0.0.1:%d",
			ErrSettings, option, address, bound.Addr(), bound.Port())
	}
	return l, nil
}

func addressOf(l net.Listener) netip.AddrPort {
	bound := l.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
}

func listenConsole(s *config.Settings) (net.Listener, error) {
	return listen("console", s.Console, s.ConsoleTLSCert == "" && !s.ConsoleInsecure)
}

// localAddress is the address at which this machine reaches a listener: that of
// loopback where it is bound to every address.
func localAddress(l net.Listener) string {
	bound := addressOf(l)
	if bound.Addr().IsUnspecified() {
		bound = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), bound.Port())
	}
	return bound.String()
}

// errorLog turns the lines of an HTTP server into log events.
type errorLog struct{ log *slog.Logger }

// Write logs one line. A client that does not get through TLS is not a fault of ours,
// and anybody can cause thousands of them.
func (w errorLog) Write(line []byte) (int, error) {
	level, text := slog.LevelWarn, strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = slog.LevelDebug
	}
	w.log.Log(context.Background(), level, "http server error", "error", text)
	return len(line), nil
}
