package console

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
)

func follow(s *Server, path string, edit func(*http.Request)) *http.Response {
	r := get(path)
	r.Host = "127.0.0.1:9325"
	if edit != nil {
		edit(r)
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	return rec.Result()
}

type session struct {
	*http.Cookie
	key string
}

func (c session) send(r *http.Request) {
	r.AddCookie(c.Cookie)
	r.Header.Set(api.SessionKeyHeader, c.key)
}

func signIn(t *testing.T, s *Server, scopes ...string) session {
	t.Helper()
	key, pages := "", s.opts.Handlers.Pages
	defer func() { s.opts.Handlers.Pages = pages }()
	s.opts.Handlers.Pages = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { key = NewSessionKey(r) })
	answer := follow(s, s.Login(scopes...), nil)
	if answer.StatusCode != http.StatusOK || len(answer.Cookies()) != 1 || key == "" {
		t.Fatalf("the link answered %d with cookies %v and the key %q", answer.StatusCode, answer.Cookies(), key)
	}
	return session{answer.Cookies()[0], key}
}

func asked(t *testing.T, s *Server, r *http.Request, c session) int {
	t.Helper()
	r.Header.Del("Authorization")
	c.send(r)
	code, _ := exchange(t, s, r)
	return code
}

func TestLinkIsExchangedOnceForASession(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Drain: func(context.Context) error { return nil }})
	link := s.Login()
	answer := follow(s, link, nil)
	want := &http.Cookie{Name: "tendril-9325", Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	got := *answer.Cookies()[0]
	if secret := got.Value; len(secret) != 64 || strings.Contains(link, secret) {
		t.Errorf("the session's secret is %q", secret)
	}
	got.Value, got.Raw = "", ""
	if diff := cmp.Diff(*want, got); diff != "" || answer.StatusCode != 303 || answer.Header.Get("Location") != "/" {
		t.Errorf("answered %d to %q, cookie\n%s", answer.StatusCode, answer.Header.Get("Location"), diff)
	}
	if again := follow(s, link, nil); again.StatusCode != 401 || len(again.Cookies()) != 0 {
		t.Errorf("a used link answered %d", again.StatusCode)
	}
	first := answer.Cookies()[0]
	if again := follow(s, link, func(r *http.Request) { r.AddCookie(first) }); again.StatusCode != 303 {
		t.Errorf("a used link, for the browser that used it, answered %d", again.StatusCode)
	}
	cookie := signIn(t, s)
	if code := asked(t, s, post("/api/v1/drain", "{}"), cookie); code != 200 {
		t.Errorf("an act of the session answered %d", code)
	}
	if code := asked(t, s, post("/api/v1/login", "{}"), cookie); code != 403 {
		t.Errorf("a session made a link: %d", code)
	}
	if code := asked(t, s, get("/-/drain"), cookie); code != 401 {
		t.Errorf("a session acted by GET: %d", code)
	}
}

func TestLinkOverTLSSetsASecureCookie(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken})
	secure := func(r *http.Request) { r.TLS = &tls.ConnectionState{} }
	c := follow(s, s.Login(), secure).Cookies()[0]
	if c.Name != "__Host-tendril-9325" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %v", c)
	}
}

func TestLinkIsNotUsedBeforeAPersonFollowsIt(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken})
	link := s.Login()
	for name, edit := range map[string]func(*http.Request){
		"HEAD":     func(r *http.Request) { r.Method = http.MethodHead },
		"prefetch": func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch;prerender") },
		"an image": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a frame": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		},
	} {
		if answer := follow(s, link, edit); answer.StatusCode < 400 || len(answer.Cookies()) != 0 {
			t.Errorf("%s: answered %d with cookies %v", name, answer.StatusCode, answer.Cookies())
		}
	}
	answer := follow(s, link, func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
	})
	if answer.StatusCode >= 400 || len(answer.Cookies()) != 1 {
		t.Errorf("answered %d %v", answer.StatusCode, answer.Header)
	}
}

// Browsers send cookies to every port of the host, and programs on other ports can set cookies.
func TestActsOfASessionNeedItsKey(t *testing.T) {
	t.Parallel()
	begun := 0
	s := New(acting(func() { begun++ }))
	ours, other := signIn(t, s), signIn(t, s)
	planted := *ours.Cookie
	planted.Value = strings.Repeat("0", len(planted.Value))
	for _, rt := range s.routes() {
		method, path := example(rt.pattern)
		for name, c := range map[string]struct {
			key string
			ok  bool
		}{"no key": {"", false}, "a wrong key": {"A" + ours.key[1:], ours.key[0] == 'A'},
			"the key of another session": {other.key, false}, "the cookie as key": {ours.Value, false}, "the key": {ours.key, true}} {
			r := hostile(method, path)
			r.AddCookie(&planted)
			r.AddCookie(ours.Cookie)
			if c.key != "" {
				r.Header.Set(api.SessionKeyHeader, c.key)
			}
			before := begun
			code, body := exchange(t, s, r)
			if rt.kind.acts() && rt.kind != own && !c.ok && (code != http.StatusForbidden ||
				body["code"] != api.CodeSessionKey || begun != before) {
				t.Errorf("%s with %s: %d %v", rt.pattern, name, code, body)
			}
			if (c.ok || !rt.kind.acts()) && (body["code"] == api.CodeSessionKey || code == http.StatusUnauthorized && !rt.kind.isHook()) {
				t.Errorf("%s with %s: %d %v", rt.pattern, name, code, body)
			}
		}
	}
	if begun == 0 {
		t.Error("no act was done with the key")
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(&Options{Token: testToken})
		late := s.Login()
		time.Sleep(codeLifetime)
		if answer := follow(s, late, nil); answer.StatusCode != 401 {
			t.Errorf("a link of 10 minutes ago answered %d", answer.StatusCode)
		}
		cookie := signIn(t, s)
		read := func() int { return asked(t, s, get("/api/v1/environment"), cookie) }
		for range 3 {
			time.Sleep(sessionLifetime - time.Second)
			if code := read(); code != http.StatusConflict {
				t.Errorf("a session in use ended: %d", code)
			}
		}
		time.Sleep(sessionLifetime)
		if code := read(); code != http.StatusUnauthorized {
			t.Errorf("a session unused for 12 hours answered %d", code)
		}
		cookie = signIn(t, s)
		r := httptest.NewRequest(http.MethodPost, "/logout", nil)
		r.Host = "127.0.0.1:9325"
		cookie.send(r)
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		if code := read(); rec.Code != 303 || rec.Result().Cookies()[0].MaxAge != -1 || code != http.StatusUnauthorized {
			t.Errorf("logout answered %d, the session then %d", rec.Code, code)
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(&Options{Token: testToken})
		first := signIn(t, s)
		time.Sleep(time.Second)
		second := signIn(t, s)
		for range maxSessions - 1 {
			signIn(t, s)
		}
		if got := len(s.sessions.open); got != maxSessions {
			t.Errorf("%d sessions are open", got)
		}
		for range 2 * maxCodes {
			s.Login()
		}
		if got := len(s.sessions.codes); got != maxCodes {
			t.Errorf("%d links are open", got)
		}
		old, young := asked(t, s, get("/api/v1/environment"), first), asked(t, s, get("/api/v1/environment"), second)
		if old != 401 || young != 409 {
			t.Errorf("the session used longest ago answers %d, the next %d", old, young)
		}
	})
}

func TestSessionHasTheScopesOfItsLink(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Drain: func(context.Context) error { return nil }})
	reader := signIn(t, s, api.ScopeRead)
	for want, r := range map[int]*http.Request{
		403: post("/api/v1/drain", "{}"), 409: get("/api/v1/environment"),
	} {
		if code := asked(t, s, r, reader); code != want {
			t.Errorf("%s answered %d, want %d", r.URL, code, want)
		}
	}
	if code := asked(t, s, post("/api/v1/deploy", "{}"), reader); code != 403 {
		t.Errorf("a deployment answered %d", code)
	}
}

func TestAnyoneOnLoopbackMayActWhereThatIsSaid(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Access: Access{Anyone: true}, Drain: func(context.Context) error { return nil }})
	for remote, want := range map[string]int{"127.0.0.1:5": 200, "[::1]:5": 200, "[::ffff:127.0.0.1]:5": 200,
		"192.0.2.1:5": 401, "": 401} {
		r := post("/api/v1/drain", "{}")
		r.Header.Del("Authorization")
		r.RemoteAddr = remote
		if code, body := exchange(t, s, r); code != want {
			t.Errorf("from %q: %d %v", remote, code, body)
		}
		r = get("/-/drain")
		r.RemoteAddr = remote
		if code, body := exchange(t, s, r); code != 401 {
			t.Errorf("a GET from %q: %d %v", remote, code, body)
		}
	}
}

func TestPagesGetWhatNoRouteAnswers(t *testing.T) {
	t.Parallel()
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { writeJSON(w, http.StatusTeapot, struct{}{}) })
	s := New(&Options{Token: testToken, Handlers: Handlers{Pages: pages}})
	for line, want := range map[string]int{
		"GET /": 418, "HEAD /": 418, "GET /queues/jobs": 418, "POST /queues/jobs/purge": 418, "GET /assets/app.js": 418,
		"GET /apiary": 418, "GET /api": 404, "GET /api/v2": 404, "GET /-/quiet": 404, "POST /livez": 404, "GET /metrics": 404,
		"DELETE /queues/jobs": 404, "GET //x": 404, "POST /login": 404, "GET /logout": 404, "GET /debug/pprof/": 404,
		"GET /livez": 200,
	} {
		method, path, _ := strings.Cut(line, " ")
		if code, body := exchange(t, s, httptest.NewRequest(method, path, nil)); code != want {
			t.Errorf("%s answered %d %v, want %d", line, code, body, want)
		}
		r := with(httptest.NewRequest(method, path, nil), "Origin", "null")
		if code, body := exchange(t, s, r); code != 403 {
			t.Errorf("%s from a null origin answered %d %v", line, code, body)
		}
		r = httptest.NewRequest(method, path, nil)
		r.Host = "evil.test"
		if code, body := exchange(t, s, r); code != 403 {
			t.Errorf("%s of another host answered %d %v", line, code, body)
		}
	}
}
