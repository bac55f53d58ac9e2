package console

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"tendril/api"
	"tendril/internal/console/tokens"
)

// Server is the console's HTTP handler. It checks the origin and sender of every request.
type Server struct {
	opts        *Options
	service     *service
	mux         *http.ServeMux
	crossOrigin *http.CrossOriginProtection
	streams     streams
	sessions    sessions
	tokens      tokens.File

	closed context.Context
	close  context.CancelFunc
}

// New returns a server. Nil options mean the zero value.
func New(opts *Options) *Server {
	s := &Server{opts: &Options{}, mux: http.NewServeMux(), crossOrigin: http.NewCrossOriginProtection()}
	s.closed, s.close = context.WithCancel(context.Background())
	if opts != nil {
		*s.opts = *opts
	}
	s.opts.Logger = cmp.Or(s.opts.Logger, slog.New(slog.DiscardHandler))
	s.opts.Deliveries = cmp.Or(s.opts.Deliveries, &Deliveries{})
	s.tokens.Dir, s.tokens.Log = s.opts.Access.TokenDir, s.opts.Logger

	s.service = &service{opts: s.opts, routes: map[string]*route{}}
	for _, rt := range s.routes() {
		s.service.routes[rt.pattern] = &rt
		s.mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, &rt) })
	}
	s.mux.HandleFunc("GET /login", s.login)
	s.mux.HandleFunc("POST /logout", s.logout)
	if s.opts.Handlers.Metrics != nil {
		s.mux.Handle("GET /metrics", s.opts.Handlers.Metrics)
	}
	return s
}

// Close ends all waits so that they do not delay the HTTP server's shutdown. Later requests do not wait.
func (s *Server) Close() { s.close() }

func (s *Server) routes() []route {
	return append(routes(s.opts, s.closed), withBody(own, api.NewLogin, s.newLogin),
		noBody(open, api.GetDocument, s.document))
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.answerProof(w, r) {
		return
	}
	setSecurityHeaders(w.Header())
	r = withID(w, r)
	if refusal := s.admit(r); refusal != nil {
		s.refuse(w, r, refusal)
		return
	}

	// The multiplexer would redirect an unclean path and return 405 for another method; both are 404 here.
	isClean := path.Clean(r.URL.EscapedPath()) == r.URL.EscapedPath()
	_, pattern := s.mux.Handler(r)
	switch {
	case isClean && pattern != "":
		s.mux.ServeHTTP(w, r)
	case isClean && s.opts.Handlers.Pages != nil && isForPage(r):
		s.servePage(w, r)
	default:
		s.refuse(w, r, api.NotFound(r.Method+" "+r.URL.Path+" not found",
			"GET /api/v1/status shows the environment"))
	}
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(s.closed, end)()
	s.opts.Handlers.Pages.ServeHTTP(w, r.WithContext(ctx))
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, refusal *api.Error) {
	c := s.newCall(r.Context(), r)
	_, pattern := s.mux.Handler(r)
	rt := s.service.routes[pattern]
	isAct := rt != nil && rt.kind.acts()
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	if isAct || refusal.Status == http.StatusForbidden && !isRead {
		s.service.recordAct(c, refusal, nil)
	}
	refusal.RequestID = c.caller.requestID
	writeJSON(w, refusal.Status, refusal)
}

// isForPage excludes paths that look like API routes or probes, so that programs get JSON errors.
func isForPage(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return !slices.Contains([]string{"api", "-", "livez", "healthz", "readyz", "startupz", "metrics", "login", "logout",
		"debug"}, first)
}

func (s *Server) newCall(ctx context.Context, r *http.Request) *call {
	sender := s.identify(r)
	return &call{ctx: api.WithCallerName(ctx, sender.who), route: &route{}, caller: sender, method: r.Method,
		path: r.URL.Path, query: r.URL.Query()}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt *route) {
	r.Body = http.MaxBytesReader(w, r.Body, api.MaxBody)
	c := s.newCall(r.Context(), r)
	c.route = rt
	c.name = r.PathValue("name")
	c.id = r.PathValue("id")
	c.follows = isStream(r)
	c.lastEventID = r.Header.Get("Last-Event-ID")
	c.body = httpBody{w, r}

	answer, refusal := s.service.answer(c)
	if st, ok := answer.(*stream); ok {
		s.streams.send(w, r, st, s.closed)
		return
	}
	if refusal == nil {
		writeJSON(w, statusOf(answer), answer)
		return
	}
	if refusal.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tendril"`)
	}
	writeJSON(w, refusal.Status, refusal)
}

func statusOf(answer any) int {
	switch a := answer.(type) {
	case probed:
		if a.failed {
			return http.StatusServiceUnavailable
		}
	case api.Drained:
		if !a.Drained {
			return http.StatusAccepted
		}
	}
	return http.StatusOK
}

// HTTPServer returns an HTTP server for h that limits slow requests and large headers. Its timeouts let handlers wait
// for 25 s.
func HTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * api.MaxWait,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnContext:       withPeerFlag,
	}
}

func setSecurityHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// admit checks the host first, because the cross-origin check passes after DNS rebinding.
func (s *Server) admit(r *http.Request) *api.Error {
	if !allowedHost(r.Host, s.opts.Access.Hosts) && !isOwnAddress(r) {
		return api.Forbidden("this listener does not serve the host named in the request",
			"use 127.0.0.1, [::1] or localhost, or start tendril with --console-hosts NAME")
	}
	if err := s.crossOrigin.Check(r); err != nil || isForeign(r) {
		return api.Forbidden("requests from pages of other sites are rejected",
			"send the request from a program, or from a page of this console")
	}
	return nil
}

// isForeign reports whether another site's page sent the request. A followed link is not foreign, because that page
// cannot read the response.
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

// After DNS rebinding, the Host is a name; a cluster's probes use the connection's own IP address.
func isOwnAddress(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	ip, err := netip.ParseAddr(hostOf(r.Host))
	return err == nil && ip.Unmap() == local.AddrPort().Addr().Unmap()
}

func hostOf(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = h
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

func allowedHost(hostport string, allowed []string) bool {
	host := hostOf(hostport)
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || slices.Contains(allowed, host)
	}
	same := func(name string) bool { return strings.EqualFold(name, host) }
	return host != "" && (same("localhost") || slices.ContainsFunc(allowed, same))
}
