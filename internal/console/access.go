package console

import (
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"tendril/api"
	"tendril/internal/host/proof"
)

const (
	// scopeDrain permits only a platform's shutdown hooks; ScopeAct includes it.
	scopeDrain = "drain"
	// scopeOwn permits creating logins and changing who has access. Only the owner's token has it.
	scopeOwn = "own"
)

// Access configures access other than the owner's. The zero value grants none.
type Access struct {
	// Hosts are accepted in Host headers, in addition to localhost, loopback IP addresses and the connection's own IP
	// address. The header's port is ignored.
	Hosts []string
	// Anyone grants requests from loopback addresses the scopes read, act and deploy. Actions by GET still need a token.
	Anyone bool
	// TokenDir is the data directory with additional tokens, see [tokens.Create]; may be "".
	TokenDir string
	// DrainToken permits only the hooks /-/drain and /-/quiet; may be "".
	DrainToken string
	ReadOnly   bool
	// HideBodies omits message bodies, attributes and the app's responses unless a request has ?body=1.
	HideBodies bool
	// TrustedProxies may send X-Forwarded-Proto and X-Forwarded-For. If set, logins and requests that need a scope must
	// use HTTPS or come directly from this machine, unless ClearText is set.
	TrustedProxies []netip.Prefix
	ClearText      bool
	// Audit is called for actions, even refused ones, and for reads of message bodies. It omits sends with a token,
	// repeated reads, and refusals beyond 60 a minute. It must not block; may be nil.
	Audit func(Act)
}

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

func (k kind) acts() bool { return k != open && k != private && k != bodies }

func (k kind) isHook() bool { return k == hook || k == deployHook }

type caller struct {
	who    string
	scopes []string
	// bearer means credentials that browsers do not send on their own.
	bearer bool
	// keyless means that the request has a session's cookie but not its key; see [api.SessionKeyHeader].
	keyless bool
	peer    bool
	// exposed means that others on the network could have read the request.
	exposed           bool
	remote, requestID string
}

func (c caller) may(scope string) bool {
	return scope == "" || slices.Contains(c.scopes, scope) || scope == scopeDrain && slices.Contains(c.scopes, api.ScopeAct)
}

func (s *Server) identify(r *http.Request) caller {
	c := s.authenticate(r)
	c.exposed = s.isExposed(r)
	c.remote = s.senderOf(r)
	c.requestID = requestID(r)
	return c
}

// An Authorization header takes precedence, even if its token is invalid.
func (s *Server) authenticate(r *http.Request) caller {
	if r.Header.Get("Authorization") != "" {
		return s.callerWithToken(bearer(r))
	}
	if fromPeer(r) {
		return caller{who: "another instance", scopes: []string{api.ScopeRead}, bearer: true, peer: true}
	}

	for _, cookie := range r.CookiesNamed(s.cookieName(r)) {
		if g, ok := s.sessions.findAndRenew(cookie.Value); ok {
			key := digestOf(r.Header.Get(api.SessionKeyHeader))
			return caller{who: g.who, scopes: g.scopes, keyless: subtle.ConstantTimeCompare(key[:], g.key[:]) == 0}
		}
	}

	if s.opts.Access.Anyone && remoteOf(r).IsLoopback() {
		return caller{who: "local user", scopes: api.Scopes()}
	}
	return caller{}
}

func (s *Server) callerWithToken(given string) caller {
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

// Anonymous reports whether a request has no valid credentials.
func (s *Server) Anonymous(r *http.Request) bool {
	return s.authenticate(r).who == "" && !proof.Knows(r, s.opts.Token) && s.peerSecret(r) == ""
}

// IsProbe reports whether a request must be answered even under load: probes and login links.
func IsProbe(r *http.Request) bool {
	return slices.Contains([]string{"/livez", "/healthz", "/readyz", "/startupz", "/login"}, r.URL.Path)
}

func (s *service) permit(c *call) *api.Error {
	scope := c.route.kind.scope()
	switch {
	case c.caller.peer && !c.route.perInstance:
		return api.Forbidden("another instance can only read the state of this one", "")
	case scope == "":
		return nil
	case c.caller.exposed:
		return api.Forbidden("this request was not encrypted and did not come through a trusted proxy",
			"use HTTPS through a proxy listed in --console-trusted-proxy that sets X-Forwarded-Proto")
	case !c.caller.may(scope):
		return c.caller.missingScope(scope)
	}
	return s.permitKind(c)
}

func (s *service) permitKind(c *call) *api.Error {
	k, access := c.route.kind, &s.opts.Access
	switch {
	case access.ReadOnly && k.acts() && k != own:
		return api.Forbidden("this console is read-only", "restart without --console-read-only to allow actions")
	case access.HideBodies && k == bodies && c.searchesBodies() && !c.wantsBodies():
		return api.Forbidden("bodies are hidden and cannot be searched", "add body=1 to see them")
	case c.caller.keyless && k.acts():
		refusal := api.Forbidden("this action has no session key",
			"send the header "+api.SessionKeyHeader+", or open the link that 'tendril open' prints")
		refusal.Code = api.CodeSessionKey
		return refusal
	case k.isHook() && c.method == http.MethodGet && !c.caller.bearer:
		// The browser may have followed a link on another site.
		return api.Unauthorized("an action by GET needs the console's token", tokenHint)
	}
	return nil
}

const tokenHint = "send the header Authorization: Bearer TOKEN with the content of " + api.TokenFile +
	" in the data directory, or open the link that 'tendril open' prints"

func (c caller) missingScope(scope string) *api.Error {
	switch {
	case c.who == "":
		return api.Unauthorized("this needs the console's token", tokenHint)
	case scope == scopeOwn:
		return api.Forbidden("only the owner's token can create logins", tokenHint)
	}
	return api.Forbidden(c.who+" has the scope "+strings.Join(c.scopes, ", ")+"; this needs "+scope,
		"use a token or a link with the scope "+scope)
}

func bearer(r *http.Request) string {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(given)
}

// isToken compares in constant time. An empty token matches nothing.
func isToken(given, token string) bool {
	want, got := digestOf(token), digestOf(given)
	return token != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

func (c *call) searchesBodies() bool { return c.query.Has("match") || c.query.Has("attribute") }

func withoutBodies(answer any) (hidden any, hasBodies bool) {
	switch a := answer.(type) {
	case api.Message:
		hideBody(&a)
		return a, true
	case api.MessagePage:
		a.Messages = edited(a.Messages, hideBody)
		return a, true
	case api.Exchange:
		a.Request = a.Request[:min(1, len(a.Request))]
		a.Answer = a.Answer[:min(1, len(a.Answer))]
		a.Body = ""
		a.AnswerBody = ""
		a.BodyHidden = true
		return a, true
	}
	return answer, false
}

func hideBody(m *api.Message) {
	m.Body = ""
	m.Attributes = nil
	m.BodyHidden = true
	m.Attempts = edited(m.Attempts, func(a *api.Attempt) { a.Answer = "" })
}

func remoteOf(r *http.Request) netip.Addr {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return remote.Addr().Unmap()
}

func (s *Server) fromTrustedProxy(r *http.Request) bool {
	remote := remoteOf(r)
	return slices.ContainsFunc(s.opts.Access.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(remote) })
}

func (s *Server) isSecure(r *http.Request) bool {
	return r.TLS != nil || s.fromTrustedProxy(r) && r.Header.Get("X-Forwarded-Proto") == "https"
}

func (s *Server) isExposed(r *http.Request) bool {
	// Local programs do not send this header, but a proxy on this machine does.
	isLocal := remoteOf(r).IsLoopback() && r.Header.Get("X-Forwarded-Proto") == ""
	return len(s.opts.Access.TrustedProxies) > 0 && !s.opts.Access.ClearText && !isLocal && !s.isSecure(r)
}

func (s *Server) senderOf(r *http.Request) string {
	if all := r.Header.Values("X-Forwarded-For"); len(all) > 0 && s.fromTrustedProxy(r) {
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
	scopes := slices.DeleteFunc(api.Scopes(), func(scope string) bool { return !c.caller.may(scope) })
	return api.Caller{Who: c.caller.who, Scopes: scopes, ReadOnly: access.ReadOnly, BodiesHidden: access.HideBodies}, nil
}
