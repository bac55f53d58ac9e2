package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tendril/api"
	"tendril/internal/host/proof"
)

const (
	// scopeDrain is for the hooks by which a platform stops the environment. ScopeAct includes it.
	scopeDrain = "drain"
	// scopeOwn is for routes that let others in. Only the owner's token has it.
	scopeOwn = "own"
)

// Access says who may ask for what, beside the holder of the owner's token. The zero value lets in nobody else.
type Access struct {
	// Hosts are host names that a request may address beside localhost and
	// loopback IP addresses; ports do not matter.
	Hosts []string
	// Anyone gives every request that comes over loopback all scopes, but for acts by GET.
	Anyone bool
	// TokenDir is the data directory whose tokens are accepted too, see [tokens.Create]; "" for none.
	TokenDir string
	// DrainToken lets its holder use the hooks /-/drain and /-/quiet, and nothing else; "" for none.
	DrainToken string
	// ReadOnly refuses every act, whoever asks.
	ReadOnly bool
	// HideBodies withholds bodies and attributes of messages from requests without ?body=1.
	HideBodies bool
	// TrustedProxies are the addresses of proxies whose X-Forwarded-Proto and X-Forwarded-For are believed. With any,
	// what needs a scope is refused in clear text from elsewhere than loopback, unless ClearText allows it.
	TrustedProxies []netip.Prefix
	ClearText      bool
	// Audit gets every act, refused ones too, and may not block; nil for nobody.
	Audit func(Act)
}

// scope is what a kind of route asks for; "" for nothing.
func (k kind) scope() string {
	switch k {
	case open:
		return ""
	case private, bodies:
		return api.ScopeRead
	case deploys, deployHook:
		return api.ScopeDeploy
	case hook:
		return scopeDrain
	case own:
		return scopeOwn
	}
	return api.ScopeAct
}

// acts reports whether a kind of route changes something.
func (k kind) acts() bool { return k != open && k != private && k != bodies }

// isHook reports whether a kind of route takes requests without a body, and acts by GET.
func (k kind) isHook() bool { return k == hook || k == deployHook }

// caller is who sent a request.
type caller struct {
	// who is as in [api.Caller].
	who    string
	scopes []string
	// bearer is whether a header that no browser sends by itself named the caller.
	bearer bool
	// keyless is whether a session's cookie came without its key: see [api.SessionKeyHeader].
	keyless bool
	// exposed is whether others on the network could have read the request.
	exposed bool
	// remote is the address of the sender, for people; requestID is that of the request.
	remote, requestID string
}

func (c caller) may(scope string) bool {
	return scope == "" || slices.Contains(c.scopes, scope) || scope == scopeDrain && slices.Contains(c.scopes, api.ScopeAct)
}

// identify finds out who sent a request, and how it came.
func (s *Server) identify(r *http.Request) caller {
	c := s.authenticate(r)
	c.exposed = s.isExposed(r)
	c.remote = s.senderOf(r)
	c.requestID = requestID(r)
	return c
}

// authenticate finds out who sent a request. Where there is an Authorization header, nothing else counts.
func (s *Server) authenticate(r *http.Request) caller {
	if r.Header.Get("Authorization") != "" {
		given := bearer(r)
		if isToken(given, s.opts.Token) {
			return caller{who: "owner", scopes: append([]string{scopeOwn}, api.Scopes()...), bearer: true}
		}
		if isToken(given, s.opts.Access.DrainToken) {
			return caller{who: "drain hook", scopes: []string{scopeDrain}, bearer: true}
		}
		if t, ok := s.tokens.Find(given); ok {
			return caller{who: "token " + t.Name, scopes: t.Scopes, bearer: true}
		}
		return caller{}
	}
	for _, cookie := range r.CookiesNamed(s.cookieName(r)) { // another port may have planted one of this name
		if g, ok := s.sessions.find(cookie.Value); ok {
			key := sha256.Sum256([]byte(r.Header.Get(api.SessionKeyHeader)))
			return caller{who: g.who, scopes: g.scopes, keyless: subtle.ConstantTimeCompare(key[:], g.key[:]) == 0}
		}
	}
	if s.opts.Access.Anyone && remoteOf(r).IsLoopback() {
		return caller{who: "anyone", scopes: api.Scopes()}
	}
	return caller{}
}

// Anonymous reports whether a request has no valid credentials.
func (s *Server) Anonymous(r *http.Request) bool {
	return s.authenticate(r).who == "" && !proof.Knows(r, s.opts.Token)
}

// IsProbe reports whether a request is one that must be answered however many others wait: a probe, or the link that
// gives a browser its credentials. The answers are short.
func IsProbe(r *http.Request) bool {
	return slices.Contains([]string{"/livez", "/healthz", "/readyz", "/startupz", "/login"}, r.URL.Path)
}

// permit refuses a call whose caller may not use the route.
func (s *service) permit(c *call) *api.Error {
	k := c.route.kind
	scope := k.scope()
	access := &s.opts.Access
	const hint = "send the header Authorization: Bearer TOKEN with the content of " + api.TokenFile +
		" in the data directory, or open the link that 'tendril open' prints"
	switch {
	case scope == "":
		return nil
	case c.caller.exposed:
		return api.NewError(http.StatusForbidden, "this request came unencrypted, and not by a trusted proxy",
			"use HTTPS, by way of a proxy that --console-trusted-proxy names and that sets X-Forwarded-Proto")
	case c.caller.who == "":
		return api.NewError(http.StatusUnauthorized, "this needs the console's token", hint)
	case !c.caller.may(scope) && scope == scopeOwn:
		return api.NewError(http.StatusForbidden, "only the owner's token lets others in", hint)
	case !c.caller.may(scope):
		return api.NewError(http.StatusForbidden, c.caller.who+" has the scope "+strings.Join(c.caller.scopes, ", ")+"; this needs "+scope,
			"use a token or a link with the scope "+scope)
	case access.ReadOnly && k.acts() && k != own:
		return api.NewError(http.StatusForbidden, "this console is read-only", "restart without --console-read-only to act")
	case access.HideBodies && k == bodies && c.searchesBodies() && !c.wantsBodies():
		return api.NewError(http.StatusForbidden, "bodies are hidden, so that they cannot be searched", "add body=1 to see them")
	case c.caller.keyless && k.acts():
		refusal := api.NewError(http.StatusForbidden, "this act came without the key of its session",
			"send the header "+api.SessionKeyHeader+", or open the link that 'tendril open' prints")
		refusal.Code = api.CodeSessionKey
		return refusal
	case k.isHook() && c.method == http.MethodGet && !c.caller.bearer:
		// A page of another site could have sent the browser here.
		return api.NewError(http.StatusUnauthorized, "an act by GET needs the console's token", hint)
	}
	return nil
}

// bearer is the token that the request carries; "" for none.
func bearer(r *http.Request) string {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(given)
}

// isToken compares in the same time whatever was sent. An empty token lets nobody in.
func isToken(given, token string) bool {
	want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
	return token != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// searchesBodies reports whether a call selects messages by their content.
func (c *call) searchesBodies() bool { return c.query.Has("match") || c.query.Has("attribute") }

// withoutBodies is an answer without what messages say; false for one that says nothing of theirs.
func withoutBodies(answer any) (any, bool) {
	switch a := answer.(type) {
	case api.Message:
		hideBody(&a)
		return a, true
	case api.MessagePage:
		a.Messages = slices.Clone(a.Messages)
		for i := range a.Messages {
			hideBody(&a.Messages[i])
		}
		return a, true
	case api.Exchange:
		a.Request, a.Answer = a.Request[:min(1, len(a.Request))], a.Answer[:min(1, len(a.Answer))]
		a.Body, a.AnswerBody, a.BodyHidden = "", "", true
		return a, true
	}
	return answer, false
}

func hideBody(m *api.Message) {
	m.Body, m.Attributes, m.BodyHidden = "", nil, true
	m.Attempts = slices.Clone(m.Attempts)
	for i := range m.Attempts {
		m.Attempts[i].Answer = ""
	}
}

// remoteOf is the address that a request came from; the zero value where it is unknown.
func remoteOf(r *http.Request) netip.Addr {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return remote.Addr().Unmap()
}

// byProxy reports whether a proxy that is believed sent a request.
func (s *Server) byProxy(r *http.Request) bool {
	remote := remoteOf(r)
	return slices.ContainsFunc(s.opts.Access.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(remote) })
}

// isSecure reports whether the sender used HTTPS.
func (s *Server) isSecure(r *http.Request) bool {
	return r.TLS != nil || s.byProxy(r) && r.Header.Get("X-Forwarded-Proto") == "https"
}

// isExposed reports whether others on the network could have read a request.
func (s *Server) isExposed(r *http.Request) bool {
	// A program of this machine sends no such header; a proxy on this machine does.
	isLocal := remoteOf(r).IsLoopback() && r.Header.Get("X-Forwarded-Proto") == ""
	return len(s.opts.Access.TrustedProxies) > 0 && !s.opts.Access.ClearText && !isLocal && !s.isSecure(r)
}

// senderOf names the address of the sender for people. A trusted proxy tells whom it answers.
func (s *Server) senderOf(r *http.Request) string {
	if all := r.Header.Values("X-Forwarded-For"); len(all) > 0 && s.byProxy(r) {
		last := all[len(all)-1]
		last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
		if addr, err := netip.ParseAddr(last); err == nil {
			return addr.String()
		}
	}
	return r.RemoteAddr
}

func (e *environmentRoutes) getCaller(c *call) (api.Caller, error) {
	access := &e.opts.Access
	shown := api.Caller{Who: c.caller.who, Scopes: []string{}, ReadOnly: access.ReadOnly, BodiesHidden: access.HideBodies}
	for _, scope := range api.Scopes() {
		if c.caller.may(scope) {
			shown.Scopes = append(shown.Scopes, scope)
		}
	}
	return shown, nil
}
