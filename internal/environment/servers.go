package environment

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/host/httplimit"
	"tendril/internal/host/listen"
	"tendril/internal/observe/logging"
	"tendril/internal/sqsapi"
)

const (
	// in bytes
	endpointBodies, consoleBodies = 32 << 20, 16 << 20
	connectionBytes               = 16 << 10
	// ownDescriptors counts database files, locks, listeners and epoll.
	ownDescriptors = 48
	// processDescriptors is the number per process, for output, supervision and connection.
	processDescriptors = 8
	leastConnections   = 8
	fullLogInterval    = time.Minute

	serverShutdownTimeout = 5 * time.Second
)

// connectionShares reserves descriptors for deliveries first, so that clients cannot exhaust them.
func connectionShares(descriptors, deliveries int) (endpoint, console int) {
	rest := descriptors - ownDescriptors - deliveries
	return min(max(rest*3/4, leastConnections), 16384), min(max(rest/8, leastConnections), 256)
}

// memoryShares divides a budget in bytes, leaving the rest to the program, caches and garbage. A budget of 0 means the
// default limits, and any number of connections and held messages.
type memoryShares struct {
	endpoint, console int64 // request bodies and receive responses
	held              int
	connections       int
}

func sharesOf(budget int64) memoryShares {
	if budget == 0 {
		return memoryShares{endpoint: endpointBodies, console: consoleBodies, connections: math.MaxInt}
	}
	return memoryShares{
		endpoint:    min(max(budget/6, sqsapi.MaxBody), endpointBodies),
		console:     min(max(budget/16, api.MaxBody), consoleBodies),
		held:        int(budget / 5),
		connections: int(budget / 4 / connectionBytes),
	}
}

func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, 1<<20))
}

func deliveryDescriptors(s *config.Settings) int {
	perDelivery := 1 // the connection to the app
	if slices.ContainsFunc(s.Queues, runsHere) {
		perDelivery = processDescriptors
	}
	return s.HTTPConnections*perDelivery + s.ProcessesMax*processDescriptors
}

func (l *lifecycle) serve(logger *logging.Logger, name string, server *http.Server, at net.Listener,
	limits httplimit.Limits, beforeShutdown func()) {
	server.ErrorLog = log.New(errorLog{logger.With("component", name)}, "", 0)
	full := logging.Interval{Every: fullLogInterval}
	limits.Full = func() {
		if full.Allow() {
			logger.Warn("connection limit reached, idle connections closed for new ones",
				"component", name, "connections", limits.Connections, "open_files", openFiles())
		}
	}

	at = httplimit.Listen(server, at, limits)
	go func() {
		if err := server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
			l.fail(fmt.Errorf("serving %s: %w", name, err))
		}
	}()

	l.onStop(name, func(ctx context.Context) error {
		beforeShutdown()
		ctx, cancel := context.WithTimeout(ctx, serverShutdownTimeout)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			return server.Close()
		}
		return nil
	})
}

func listenError(option string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, listen.ErrInUse):
		return conflict{fmt.Errorf("--%s %w", option, err)}
	case errors.Is(err, listen.ErrReachable):
		return fmt.Errorf("%w: --%s %w", ErrSettings, option, err)
	}
	return fmt.Errorf("--%s %w", option, err)
}

func listenConsole(s *config.Settings) (net.Listener, error) {
	isProtected := s.ConsoleTLSCert != "" || s.ConsoleInsecure || len(s.ConsoleTrustedProxy) > 0
	localOnly := !isProtected || s.ConsoleAuth == config.ConsoleAuthNone
	l, err := listen.TCP(s.Console, localOnly)
	return l, listenError("console", err)
}

type errorLog struct{ log *slog.Logger }

// Write logs TLS handshake errors at debug level, because any client can cause thousands of them.
func (e errorLog) Write(line []byte) (int, error) {
	level, text := slog.LevelWarn, strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = slog.LevelDebug
	}
	e.log.Log(context.Background(), level, "http server error", "error", text)
	return len(line), nil
}
