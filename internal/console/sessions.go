package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"tendril/api"
)

const (
	codeLifetime    = 10 * time.Minute
	sessionLifetime = 12 * time.Hour // since the last request
	maxCodes        = 16
	maxSessions     = 64
)

// sessions holds login codes and browser sessions by the digest of their secret.
type sessions struct {
	mu          sync.Mutex
	serial      int
	codes, open map[digest]grant
}

type digest = [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

type grant struct {
	who    string
	scopes []string
	until  time.Time
	key    digest
}

type sessionKeyKey struct{}

// NewSessionKey returns the key of the session that the request opened, or "" if it opened none.
func NewSessionKey(r *http.Request) string {
	key, _ := r.Context().Value(sessionKeyKey{}).(string)
	return key
}

func (s *sessions) newCode(scopes []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := rand.Text()
	s.codes = putGrant(s.codes, maxCodes, code, grant{scopes: scopes, until: time.Now().Add(codeLifetime)})
	return code
}

func (s *sessions) openWith(code string) (opened openedSession, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.codes[digestOf(code)]
	delete(s.codes, digestOf(code))
	if !ok || !time.Now().Before(g.until) {
		return openedSession{}, false
	}

	s.serial++
	opened = openedSession{who: fmt.Sprintf("session %d", s.serial), secret: api.NewToken(), key: rand.Text()}
	g.who = opened.who
	g.until = time.Now().Add(sessionLifetime)
	g.key = digestOf(opened.key)
	s.open = putGrant(s.open, maxSessions, opened.secret, g)
	return opened, true
}

type openedSession struct {
	who    string
	secret string // of the cookie
	key    string // see [NewSessionKey]
}

func putGrant(m map[digest]grant, most int, secret string, g grant) map[digest]grant {
	if m == nil {
		m = map[digest]grant{}
	}
	if len(m) >= most {
		delete(m, firstToExpire(m))
	}
	m[digestOf(secret)] = g
	return m
}

func firstToExpire(m map[digest]grant) digest {
	return slices.MinFunc(slices.Collect(maps.Keys(m)), func(a, b digest) int { return m[a].until.Compare(m[b].until) })
}

func (s *sessions) findAndRenew(secret string) (grant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := digestOf(secret)
	g, ok := s.open[id]
	if !ok || !time.Now().Before(g.until) {
		delete(s.open, id)
		return grant{}, false
	}
	g.until = time.Now().Add(sessionLifetime)
	s.open[id] = g
	return g, true
}

func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, digestOf(secret))
}

// cookieName includes the port, because browsers share cookies between ports. Over TLS, the prefix binds the cookie to
// this host.
func (s *Server) cookieName(r *http.Request) string {
	name := "tendril"
	if u := (url.URL{Host: r.Host}); u.Port() != "" {
		name += "-" + u.Port()
	}
	if s.isSecure(r) {
		return "__Host-" + name
	}
	return name
}

func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, secret string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(r), Value: secret, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: s.isSecure(r), SameSite: http.SameSiteStrictMode})
}

func (s *Server) recordLogin(r *http.Request, who string, refusal *api.Error) {
	c := s.newCall(r.Context(), r)
	c.caller.who = who
	c.route = &route{act: "login link used"}
	s.service.recordAct(c, refusal, nil)
}

// login keeps an existing session if the code has already been used, because browsers repeat the request when they
// restore pages.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	early := strings.HasPrefix(r.Header.Get("Sec-Purpose"), "prefetch") // the user has not followed the link
	if r.Method == http.MethodHead || early {
		http.Error(w, "open this link in a browser", http.StatusServiceUnavailable)
		return
	}

	if s.isExposed(r) {
		http.Error(w, "this link was opened over plain HTTP, and not through a trusted proxy; use HTTPS", http.StatusForbidden)
		return
	}

	opened, ok := s.sessions.openWith(r.URL.Query().Get("code"))
	switch {
	case ok:
		s.startSession(w, r, &opened)
	case s.authenticate(r).who == "":
		s.refuseLogin(w, r)
	default:
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (s *Server) startSession(w http.ResponseWriter, r *http.Request, opened *openedSession) {
	s.setCookie(w, r, opened.secret, 0)
	s.recordLogin(r, opened.who, nil)
	if s.opts.Handlers.Pages == nil {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	ctx := context.WithValue(r.Context(), sessionKeyKey{}, opened.key)
	s.opts.Handlers.Pages.ServeHTTP(w, r.WithContext(ctx))
}

func (s *Server) refuseLogin(w http.ResponseWriter, r *http.Request) {
	refusal := api.Unauthorized("this link was used already, or is older than 10 minutes", "")
	if r.URL.Query().Has("code") {
		s.recordLogin(r, "", refusal)
	}

	if s.opts.Handlers.Pages != nil {
		s.opts.Handlers.Pages.ServeHTTP(w, r)
		return
	}
	http.Error(w, refusal.Message+"; type 'tendril open' on the machine of the environment to get a new one",
		refusal.Status)
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	for _, cookie := range r.CookiesNamed(s.cookieName(r)) {
		s.sessions.end(cookie.Value)
	}
	s.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// Login returns the path of a login link for one browser, valid for 10 minutes. Without scopes, it grants all.
func (s *Server) Login(scopes ...string) string {
	if len(scopes) == 0 {
		scopes = api.Scopes()
	}
	return "/login?code=" + s.sessions.newCode(slices.Clone(scopes))
}

func (s *Server) newLogin(_ *call, body api.LoginRequest) (api.LoginLink, error) {
	return api.LoginLink{Path: s.Login(body.Scopes...)}, nil
}
