package sqsapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

// Time limits and sizes of the HTTP server.
const (
	// readHeaderTimeout and readTimeout end requests that trickle in.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	// writeTimeout counts from the end of the request's header, so it has to
	// hold the body (30 s), the longest poll (20 s) and the reply.
	writeTimeout = readTimeout + 20*time.Second + 30*time.Second
	// idleTimeout is longer than the 90 s after which Go's HTTP client, and
	// with it the AWS SDK for Go, closes an idle connection: the client
	// closes first and never meets a connection that is just being closed.
	idleTimeout = 120 * time.Second
	// maxHeader is ample: a signed request has about 1 KiB of header.
	maxHeader = 64 << 10
)

// Server returns a server for h with time limits that fit long polls and
// that clients which trickle, stall or never leave cannot exhaust. Its
// Shutdown calls [Handler.Stop], so that waiting ReceiveMessage calls do not
// hold it up. The caller may set Addr, ErrorLog and the like before use.
func Server(h *Handler) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
	}
	server.RegisterOnShutdown(h.Stop)
	return server
}

// CheckListenAddress returns an error unless addr, in the form HOST:PORT, can
// be reached from this machine alone: a loopback address or localhost, with
// any port, 0 included. Whoever can connect may do everything, because
// requests are not authenticated.
func CheckListenAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address %q is not of the form HOST:PORT; give for example 127.0.0.1:9324", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen address %q has the port %q; give a number from 0 (any free port) to 65535", addr, port)
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen address %q can be reached from other machines, and since requests are not authenticated yet, "+
		"the queue is served to this machine only; give 127.0.0.1:%s, [::1]:%s or localhost:%s", addr, port, port, port)
}
