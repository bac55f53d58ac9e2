package console

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/host/proof"
	"tendril/queue"
)

// Server answers the console's requests. It is an [http.Handler].
type Server struct {
	opts        Options
	log         *slog.Logger
	mux         *http.ServeMux
	crossOrigin *http.CrossOriginProtection
	streams     streams

	sessions sessions
	tokens   tokenFile
	auditor  auditor

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
	s.tokens.dir, s.tokens.log = s.opts.TokenDir, s.log
	s.opts.Deliveries = cmp.Or(s.opts.Deliveries, &Deliveries{})
	for _, rt := range s.routes() {
		s.mux.Handle(rt.pattern, routeHandler{s, rt})
	}
	s.mux.HandleFunc("GET /login", s.login)
	s.mux.HandleFunc("POST /logout", s.logout)
	if s.opts.Metrics != nil {
		s.mux.Handle("GET /metrics", s.opts.Metrics)
	}
	return s
}

// Close ends every waiting request, so that a shutdown of the HTTP server does
// not wait for them. It may be called more than once; requests after it are
// still answered, without waiting.
func (s *Server) Close() { s.close() }

// routes are those of the table, and those that need the server itself.
func (s *Server) routes() []route {
	return append(routes(&s.opts, s.closed), route{pattern: "POST /api/v1/login", kind: own, handle: taking(s.newLogin)},
		route{pattern: "GET /api/v1/openapi.json", kind: open, handle: s.document})
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if proof.Answer(w, r, s.opts.Token) {
		return
	}
	secure(w.Header())
	r = withID(w, r)
	refusal := s.admit(r)
	h, pattern := s.mux.Handler(r)
	unclean := path.Clean(r.URL.EscapedPath()) != r.URL.EscapedPath()
	if refusal == nil && pattern == "" && !unclean && s.opts.Pages != nil && ofPages(r) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		defer context.AfterFunc(s.closed, end)() // a page that is live ends with the server
		s.opts.Pages.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	// The multiplexer would redirect an unclean path and answer 405 for
	// another method; here what is not in the table does not exist.
	if refusal == nil && (pattern == "" || unclean) {
		refusal = api.NewError(http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path,
			"GET /api/v1/status shows what there is")
	}
	if refusal != nil {
		rt, _ := h.(routeHandler)
		isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
		if rt.kind.acts() || refusal.Status == http.StatusForbidden && !isRead {
			s.record(s.identify(r).with(r), refusal.Status, refusal, nil)
		}
		writeJSON(w, refusal.Status, identified(refusal, r))
		return
	}
	s.mux.ServeHTTP(w, r)
}

// ofPages reports whether a request that no route answers may be one for a page. What looks like a route of the API, or
// a probe, gets an answer that programs understand.
func ofPages(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return !slices.Contains([]string{"api", "-", "livez", "healthz", "readyz", "startupz", "metrics", "login", "logout",
		"debug"}, first)
}

// routeHandler answers the requests of one route.
type routeHandler struct {
	*Server
	route
}

// ServeHTTP wraps the route's handler with what its kind asks for.
func (s routeHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, api.MaxBody)
	r = s.identify(r).with(r)
	body, err := s.answer(w, r)
	if st, ok := body.(*stream); ok {
		s.streams.send(w, r, st, s.closed.Done())
		return
	}
	status, refusal := http.StatusOK, (*api.Error)(nil)
	if a, ok := body.(answer); ok {
		status, body = a.status, a.body
	}
	if err != nil {
		refusal = asRefusal(err)
		if refusal.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="tendril"`)
		}
		if name := r.PathValue("name"); name != "" && refusal.Code == queue.CodeQueueDoesNotExist &&
			strings.Contains(s.pattern, "/queues/{name}") {
			refusal.Message = "there is no queue " + strconv.Quote(name)
		}
		status = refusal.Status
	}
	if hidden, ok := withoutBodies(body); ok && s.kind == bodies && s.opts.HideBodies && !wantsBodies(r) {
		body = hidden
	} else if ok && s.kind == bodies && refusal == nil {
		s.recordRead(r, body)
	}
	// Programs send too many messages to log each call.
	if s.kind.acts() && (s.kind != produce || !callerOf(r).bearer) {
		s.record(r, status, refusal, body)
	}
	if !callerOf(r).may(api.ScopeRead) {
		body = public(body)
	}
	if refusal != nil {
		body = identified(refusal, r)
	}
	writeJSON(w, status, body)
}

// answer calls the route's handler for a request that its kind permits.
func (s routeHandler) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	if refusal := s.permit(r); refusal != nil {
		return nil, refusal
	}
	if s.kind.isHook() && r.Method == http.MethodHead {
		return nil, api.NewError(http.StatusNotFound, "there is no HEAD "+r.URL.Path,
			"HEAD is not allowed on webhooks: send GET or POST")
	}
	if s.kind.acts() && !s.kind.isHook() {
		if refusal := checkAct(r); refusal != nil {
			return nil, refusal
		}
	}
	if s.limit > 0 { // more time than the HTTP server gives, for the request too: its end would end the handler
		until := time.Now().Add(s.limit + api.MaxWait)
		rc := http.NewResponseController(w)
		// What is not a connection, in a test for one, has no deadlines to move.
		_ = errors.Join(rc.SetReadDeadline(until), rc.SetWriteDeadline(until))
	}
	return s.handle(r)
}

// HTTPServer returns an HTTP server for h, a [Server] as a rule, with limits
// against slow and large requests. Its write time-out leaves room for
// 25 s.
func HTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * api.MaxWait,
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
func (s *Server) admit(r *http.Request) *api.Error {
	if !allowedHost(r.Host, s.opts.Hosts) && !isOwnAddress(r) {
		return api.NewError(http.StatusForbidden, "this listener does not answer for the host that the request names",
			"address it as 127.0.0.1, [::1] or localhost, or start tendril with --console-hosts NAME")
	}
	if err := s.crossOrigin.Check(r); err != nil || isForeign(r) {
		return api.NewError(http.StatusForbidden, "requests from pages of other sites are refused",
			"send the request from a program, or from a page of this console")
	}
	return nil
}

// isForeign reports whether another site's page made a browser send a request, of any method. A link that a person
// follows is not one: what it shows is not for that page.
func isForeign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || u.Host != r.Host
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
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
func checkAct(r *http.Request) *api.Error {
	if r.Method == http.MethodDelete && r.ContentLength == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return api.NewError(http.StatusUnsupportedMediaType, "this request must be JSON",
			"send the header Content-Type: application/json, and {} as an empty body")
	}
	return nil
}
