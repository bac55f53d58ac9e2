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
	"tendril/internal/host/proof"
)

// Server is the HTTP front end of the console: it checks where a request comes from and who sent it. It is an
// [http.Handler].
type Server struct {
	opts        *Options
	service     *service
	mux         *http.ServeMux
	crossOrigin *http.CrossOriginProtection
	streams     streams
	sessions    sessions
	tokens      tokens.File

	closed context.Context // ends every wait
	close  context.CancelFunc
}

// New returns a server; nil options are the zero value.
func New(opts *Options) *Server {
	s := &Server{opts: &Options{}, mux: http.NewServeMux(), crossOrigin: http.NewCrossOriginProtection()}
	s.closed, s.close = context.WithCancel(context.Background())
	if opts != nil {
		*s.opts = *opts
	}
	s.opts.Logger = cmp.Or(s.opts.Logger, slog.New(slog.DiscardHandler))
	s.opts.Deliveries = cmp.Or(s.opts.Deliveries, &Deliveries{})
	s.tokens.Dir, s.tokens.Log = s.opts.Access.TokenDir, s.opts.Logger

	s.service = &service{opts: s.opts, log: s.opts.Logger, routes: map[string]*route{}}
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

// Close ends every waiting request, so that a shutdown of the HTTP server does
// not wait for them. It may be called more than once; requests after it are
// still answered, without waiting.
func (s *Server) Close() { s.close() }

// routes are those of the table, and those that need the server itself.
func (s *Server) routes() []route {
	return append(routes(s.opts, s.closed), do(own, api.NewLogin, s.newLogin), show(open, api.GetDocument, s.document))
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if proof.Answer(w, r, s.opts.Token) {
		return
	}
	secure(w.Header())
	r = withID(w, r)
	refusal := s.admit(r)
	_, pattern := s.mux.Handler(r)
	unclean := path.Clean(r.URL.EscapedPath()) != r.URL.EscapedPath()
	if refusal == nil && pattern == "" && !unclean && s.opts.Handlers.Pages != nil && ofPages(r) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		defer context.AfterFunc(s.closed, end)() // a page that is live ends with the server
		s.opts.Handlers.Pages.ServeHTTP(w, r.WithContext(ctx))
		return
	}

	// The multiplexer would redirect an unclean path and answer 405 for
	// another method; here only the rows of the table exist.
	if refusal == nil && (pattern == "" || unclean) {
		refusal = api.NewError(http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path,
			"GET /api/v1/status shows what there is")
	}
	if refusal != nil {
		c := s.newCall(r.Context(), r)
		rt := s.service.routes[pattern]
		isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
		if rt != nil && rt.kind.acts() || refusal.Status == http.StatusForbidden && !isRead {
			s.service.record(c, refusal, nil)
		}
		refusal.RequestID = c.caller.requestID
		writeJSON(w, refusal.Status, refusal)
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

// newCall returns the call that a request is, with its caller but without a body.
func (s *Server) newCall(ctx context.Context, r *http.Request) *call {
	sender := s.identify(r)
	return &call{ctx: api.WithCallerName(ctx, sender.who), route: &route{}, caller: sender, method: r.Method,
		path: r.URL.Path, query: r.URL.Query()}
}

// serve answers the requests of one route.
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
		s.streams.send(w, r, st, s.closed.Done())
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

// statusOf is the HTTP status of an answer that is not a refusal.
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
	if !allowedHost(r.Host, s.opts.Access.Hosts) && !isOwnAddress(r) {
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
