package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/queue"
)

// Server answers the console's requests. It is an [http.Handler].
type Server struct {
	opts        Options
	log         *slog.Logger
	mux         *http.ServeMux
	crossOrigin *http.CrossOriginProtection

	closed context.Context // ends every wait
	close  context.CancelFunc
}

// New returns a server; nil options are the zero value.
func New(opts *Options) *Server {
	s := &Server{mux: http.NewServeMux(), crossOrigin: http.NewCrossOriginProtection()}
	s.closed, s.close = context.WithCancel(context.Background())
	if opts != nil {
		s.opts = *opts
	}
	s.log = cmp.Or(s.opts.Logger, slog.New(slog.DiscardHandler))
	s.opts.Deliveries = cmp.Or(s.opts.Deliveries, &Deliveries{})
	for _, rt := range routes(&s.opts, s.closed) {
		s.mux.Handle(rt.pattern, s.serve(rt))
	}
	if s.opts.Metrics != nil {
		s.mux.Handle("GET /metrics", s.opts.Metrics)
	}
	return s
}

// Close ends every waiting request, so that a shutdown of the HTTP server does
// not wait for them. It may be called more than once; requests after it are
// still answered, without waiting.
func (s *Server) Close() { s.close() }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	refusal := s.admit(r)
	// The multiplexer would redirect an unclean path and answer 405 for
	// another method; here what is not in the table does not exist.
	if _, pattern := s.mux.Handler(r); refusal == nil &&
		(pattern == "" || path.Clean(r.URL.EscapedPath()) != r.URL.EscapedPath()) {
		refusal = refuse(http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path,
			"GET /api/v1/status shows what there is")
	}
	if refusal != nil {
		writeJSON(w, refusal.Status, refusal)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// serve wraps a route's handler with what its kind asks for.
func (s *Server) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		body, err := s.answer(rt, w, r)
		if err != nil {
			refusal := asRefusal(err)
			if refusal.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="tendril"`)
			}
			if name := r.PathValue("name"); name != "" && refusal.Code == queue.CodeQueueDoesNotExist &&
				strings.Contains(rt.pattern, "/queues/{name}") {
				refusal.Message = "there is no queue " + strconv.Quote(name)
			}
			writeJSON(w, refusal.Status, refusal)
			return
		}
		status := http.StatusOK
		if a, ok := body.(answer); ok {
			status, body = a.status, a.body
		}
		if rt.kind == act || rt.kind == hook {
			s.log.Info("console act", "method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr, "status", status)
		}
		if full, ok := body.(publisher); ok && !authorized(r, s.opts.Token) {
			body = full.public()
		}
		writeJSON(w, status, body)
	}
}

// answer calls a route's handler for a request that its kind permits.
func (s *Server) answer(rt route, w http.ResponseWriter, r *http.Request) (any, error) {
	if rt.kind != open && !authorized(r, s.opts.Token) {
		return nil, refuse(http.StatusUnauthorized, "this needs the console's token",
			"send the header Authorization: Bearer TOKEN with the content of "+TokenFile+" in the data directory")
	}
	if rt.kind == hook && r.Method == http.MethodHead {
		return nil, refuse(http.StatusNotFound, "there is no HEAD "+r.URL.Path,
			"HEAD is not allowed on webhooks: send GET or POST")
	}
	if rt.kind == act || rt.kind == produce {
		if refusal := checkAct(r); refusal != nil {
			return nil, refusal
		}
	}
	if rt.limit > 0 { // more time than the HTTP server gives, for the request too: its end would end the handler
		until := time.Now().Add(rt.limit + maxWait)
		rc := http.NewResponseController(w)
		// What is not a connection, in a test for one, has no deadlines to move.
		_ = errors.Join(rc.SetReadDeadline(until), rc.SetWriteDeadline(until))
	}
	return rt.handle(r)
}

// HTTPServer returns an HTTP server for h, a [Server] as a rule, with limits
// against slow and large requests. Its write time-out leaves room for
// 25 s.
func HTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * maxWait,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// secure sets what a browser must not do with an answer. There are no
// Access-Control headers, ever.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// admit refuses requests that were not meant for this listener, or that a page
// of another site made a browser send. A page whose name was pointed at this
// machine passes the cross-origin check, so the Host is asked first.
func (s *Server) admit(r *http.Request) *Error {
	if !allowedHost(r.Host, s.opts.Hosts) && !isOwnAddress(r) {
		return refuse(http.StatusForbidden, "this listener does not answer for the host that the request names",
			"address it as 127.0.0.1, [::1] or localhost, or start tendril with --console-hosts NAME")
	}
	if err := s.crossOrigin.Check(r); err != nil {
		return refuse(http.StatusForbidden, "requests from pages of other sites are refused",
			"send the request from a program, or from a page of this console")
	}
	return nil
}

// isOwnAddress reports whether the request names the very IP address that it came
// in at, as a probe of a cluster does. A page whose name was pointed here has a
// name in its place.
func isOwnAddress(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	ip, err := netip.ParseAddr(hostOf(r.Host))
	return err == nil && ip.Unmap() == local.AddrPort().Addr().Unmap()
}

// hostOf is the host of a Host header, without port and brackets.
func hostOf(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = h
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

// allowedHost reports whether a Host header names this listener: localhost, a
// loopback address, or one of the names given; ports do not matter.
func allowedHost(hostport string, allowed []string) bool {
	host := hostOf(hostport)
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || slices.Contains(allowed, host)
	}
	same := func(name string) bool { return strings.EqualFold(name, host) }
	return host != "" && (same("localhost") || slices.ContainsFunc(allowed, same))
}

// checkAct refuses an act that a form of a web page could have sent.
func checkAct(r *http.Request) *Error {
	if r.Method == http.MethodDelete && r.ContentLength == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "this request must be JSON",
			"send the header Content-Type: application/json, and {} as an empty body")
	}
	return nil
}

// authorized reports whether the request carries the token. The comparison
// takes the same time whatever was sent. An empty token lets nobody in.
func authorized(r *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}
