package sqsapi

import (
	"net/http"
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
