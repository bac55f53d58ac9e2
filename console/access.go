package console

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// The scopes: what a caller may do. A scope does not hold another one.
const (
	// ScopeRead shows message bodies, settings, and what apps, hooks and other servers said.
	ScopeRead = "read"
	// ScopeAct changes queues, messages and tasks, and stops the environment.
	ScopeAct = "act"
	// ScopeDeploy runs code: deployments and reloads.
	ScopeDeploy = "deploy"
	// scopeOwn is for routes that let others in. Only the owner's token has it.
	scopeOwn = "own"
)

// allScopes are those that a session or a token can have.
var allScopes = []string{ScopeRead, ScopeAct, ScopeDeploy}

// Access says who may ask for what, beside the holder of the owner's token. The zero value lets in nobody else.
type Access struct {
	// Hosts are host names that a request may address beside localhost and
	// loopback IP addresses; ports do not matter.
	Hosts []string
	// Anyone gives every request that comes over loopback all scopes, but for acts by GET.
	Anyone bool
	// Audit gets every act, refused ones too, and may not block; nil for nobody.
	Audit func(Act)
}

// scope is what a kind of route asks for; "" for nothing.
func (k kind) scope() string {
	switch k {
	case open:
		return ""
	case private:
		return ScopeRead
	case deploys, deployHook:
		return ScopeDeploy
	case own:
		return scopeOwn
	}
	return ScopeAct
}

// acts reports whether a kind of route changes something.
func (k kind) acts() bool { return k != open && k != private }

// isHook reports whether a kind of route takes requests without a body, and acts by GET.
func (k kind) isHook() bool { return k == hook || k == deployHook }

// caller is who sent a request.
type caller struct {
	// who is "owner", "session" and a number, or "anyone"; "" for nobody.
	who    string
	scopes []string
	// bearer is whether a header that no browser sends by itself named the caller.
	bearer bool
}

func (c caller) may(scope string) bool { return scope == "" || slices.Contains(c.scopes, scope) }

// callerKey is the key of the caller in the context of a request.
type callerKey struct{}

func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// identify finds out who sent a request. Where there is an Authorization header, nothing else counts.
func (s *Server) identify(r *http.Request) caller {
	if r.Header.Get("Authorization") != "" {
		if authorized(r, s.opts.Token) {
			return caller{"owner", append([]string{scopeOwn}, allScopes...), true}
		}
		return caller{}
	}
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		if g, ok := s.sessions.find(cookie.Value); ok {
			return caller{who: g.who, scopes: g.scopes}
		}
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if s.opts.Anyone && err == nil && remote.Addr().Unmap().IsLoopback() {
		return caller{who: "anyone", scopes: allScopes}
	}
	return caller{}
}

// permit refuses a request whose caller may not use the route.
func permit(rt route, r *http.Request) *Error {
	c, scope := callerOf(r), rt.kind.scope()
	const hint = "send the header Authorization: Bearer TOKEN with the content of " + TokenFile +
		" in the data directory, or open the link that 'tendril open' prints"
	switch {
	case c.who == "" && scope != "":
		return refuse(http.StatusUnauthorized, "this needs the console's token", hint)
	case !c.may(scope) && scope == scopeOwn:
		return refuse(http.StatusForbidden, "only the owner's token lets others in", hint)
	case !c.may(scope):
		return refuse(http.StatusForbidden, c.who+" has the scope "+strings.Join(c.scopes, ", ")+"; this needs "+scope,
			"use a token or a link with the scope "+scope)
	case rt.kind.isHook() && r.Method == http.MethodGet && !c.bearer:
		// A page of another site could have sent the browser here.
		return refuse(http.StatusUnauthorized, "an act by GET needs the console's token", hint)
	}
	return nil
}

// with returns the request with its caller.
func (c caller) with(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
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

// Caller is what the console knows of the sender of a request.
type Caller struct {
	// Who is "owner", "session" and a number, the name of a token, or "anyone"; "" for nobody.
	Who string `json:"who,omitempty"`
	// Scopes are of the Scope constants.
	Scopes []string `json:"scopes"`
}

func (e *environmentRoutes) caller(r *http.Request) (any, error) {
	c := callerOf(r)
	shown := Caller{Who: c.who, Scopes: []string{}}
	for _, scope := range allScopes {
		if c.may(scope) {
			shown.Scopes = append(shown.Scopes, scope)
		}
	}
	return shown, nil
}

// accessClient is the part of a [Client] about who may do what.
type accessClient struct{ conn *connection }

// Caller returns who the client is for the console.
func (c accessClient) Caller(ctx context.Context) (Caller, error) {
	return ask[Caller](ctx, c.conn, "GET /api/v1/caller", nil)
}
