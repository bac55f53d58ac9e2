package environment

import (
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"tendril/httplimit"
	"tendril/logging"
)

// Bounds of what the listeners take.
const (
	// endpointBodies and consoleBodies are how many bytes of large request bodies
	// are held at once.
	endpointBodies = 32 << 20
	consoleBodies  = 16 << 20
	// ownDescriptors are those that an environment has open without any work:
	// files of the queues, locks, listeners, the kernel's events.
	ownDescriptors = 48
	// processDescriptors are those that one process of the app or of a function
	// takes: its output, what is watched of it, and a connection to it.
	processDescriptors = 8
	// leastConnections is what a listener takes however few descriptors there are.
	leastConnections = 8
	// fullEvery is the least time between two lines about a listener that is full.
	fullEvery = time.Minute
)

// connectionShares are the most connections of the queue endpoint and of the
// console. What the worker needs for its deliveries is set aside first: clients
// of the listeners must never take it.
func connectionShares(descriptors, deliveries int) (endpoint, console int) {
	rest := descriptors - ownDescriptors - deliveries
	return min(max(rest*3/4, leastConnections), 16384), min(max(rest/8, leastConnections), 256)
}

// openFiles is how many descriptors this process may have.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, 1<<20))
}

// deliveryDescriptors are the descriptors that the worker and the app need.
func (e *Environment) deliveryDescriptors() int {
	perDelivery := 1 // a connection to the app
	for i := range e.s.Queues {
		if e.s.Queues[i].Lambda != "" {
			perDelivery = processDescriptors
		}
	}
	return e.s.HTTPConnections*perDelivery + e.s.ProcessesMax*processDescriptors
}

// limitConnections bounds the connections of a server, and tells now and then
// that there is no room.
func (e *Environment) limitConnections(name string, server *http.Server, l net.Listener, most int) net.Listener {
	full := logging.Interval{Every: fullEvery}
	return httplimit.Listen(server, l, most, func() {
		if full.Allow() {
			e.Logger.Warn("connection limit reached, idle connections are closed for new ones",
				"component", name, "connections", most, "open_files", openFiles())
		}
	})
}

// errorLog turns the lines of an HTTP server into log events.
type errorLog struct {
	log  *slog.Logger
	name string
}

// newErrorLog returns the ErrorLog of the server of that name.
func newErrorLog(to *slog.Logger, name string) *log.Logger {
	return log.New(errorLog{to, name}, "", 0)
}

// Write logs one line. A client that does not get through TLS is no fault of ours,
// and anybody can cause thousands of them.
func (w errorLog) Write(line []byte) (int, error) {
	level, text := slog.LevelWarn, strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = slog.LevelDebug
	}
	w.log.Log(context.Background(), level, "http server error", slog.String("component", w.name),
		slog.String("error", text))
	return len(line), nil
}
