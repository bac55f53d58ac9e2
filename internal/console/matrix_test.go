package console

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tendril/api"
)

func TestRequestMatrix(t *testing.T) {
	t.Parallel()
	begun := 0
	act := func() { begun++ }
	opts := acting(act)
	opts.Handlers.Metrics = http.NotFoundHandler()
	opts.Handlers.Pages = http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { act(); writeJSON(w, http.StatusOK, struct{}{}) })
	s := New(opts)
	cookie := signIn(t, s)
	targets := append(s.routes(), route{pattern: "GET /metrics"}, route{pattern: "GET /page"},
		route{pattern: "POST /page"},
		route{pattern: "GET /login"}, route{pattern: "POST /logout"}, route{pattern: "GET /api/v1/nothing"})
	edits := map[string]func(*http.Request){
		"wrong Host":             func(r *http.Request) { r.Host = "evil.test:9325" },
		"no Host":                func(r *http.Request) { r.Host = "" },
		"rebound name":           func(r *http.Request) { r.Host = "evil.test"; r.Header.Set("Origin", "http://evil.test") },
		"null origin":            func(r *http.Request) { r.Header.Set("Origin", "null") },
		"foreign origin":         func(r *http.Request) { r.Header.Set("Origin", "https://evil.test") },
		"origin of another port": func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080") },
		"no origin at all":       func(r *http.Request) { r.Header.Set("Origin", "%zz") },
		"cross-site fetch":       func(r *http.Request) { fetched(r, "cross-site", "cors", "empty") },
		"cross-site image":       func(r *http.Request) { fetched(r, "cross-site", "no-cors", "image") },
		"another port's script":  func(r *http.Request) { fetched(r, "same-site", "no-cors", "script") },
		"cross-site frame":       func(r *http.Request) { fetched(r, "cross-site", "navigate", "iframe") },
		"WebSocket":              func(r *http.Request) { fetched(r, "cross-site", "websocket", "websocket") },
		"old WebSocket": func(r *http.Request) {
			r.Header.Set("Upgrade", "websocket")
			r.Header.Set("Origin", "https://evil.test")
		},
	}
	for _, rt := range targets {
		method, path := example(rt.pattern)
		for name, edit := range edits {
			for who, identify := range map[string]func(*http.Request){
				"nobody":  func(*http.Request) {},
				"session": cookie.send,
				"owner":   func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) },
			} {
				r := hostile(method, path)
				identify(r)
				edit(r)
				if code := answered(t, s, r); code != http.StatusForbidden {
					t.Errorf("%s, %s, by %s: answered %d", rt.pattern, name, who, code)
				}
			}
		}
	}
	if begun > 0 {
		t.Errorf("%d refused requests did something", begun)
	}
}

func TestCallersOfEveryRoute(t *testing.T) {
	t.Parallel()
	s := New(acting(func() {}))
	cookie := signIn(t, s)
	wrong := *cookie.Cookie
	wrong.Value = strings.Repeat("0", len(cookie.Value))
	otherPort := *cookie.Cookie
	otherPort.Name = "tendril-9999"
	for _, rt := range s.routes() {
		method, path := example(rt.pattern)
		for name, c := range map[string]struct {
			edit func(*http.Request)
			ok   bool
		}{
			"nobody":        {func(*http.Request) {}, false},
			"a wrong token": {func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, false},
			"the cookie as token": {func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+cookie.Value)
			}, false},
			"a wrong cookie":             {func(r *http.Request) { r.AddCookie(&wrong) }, false},
			"the cookie of another port": {func(r *http.Request) { r.AddCookie(&otherPort) }, false},
			"a wrong token and a cookie": {func(r *http.Request) {
				r.AddCookie(cookie.Cookie)
				r.Header.Set("Authorization", "Bearer x")
			}, false},
			"a token in the URL": {func(r *http.Request) { r.URL.RawQuery = "token=" + testToken }, false},
			"a session":          {cookie.send, !rt.kind.isHook() || method != http.MethodGet},
			"the owner":          {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) }, true},
		} {
			r := hostile(method, path)
			c.edit(r)
			code := answered(t, s, r)
			if refused := code == http.StatusUnauthorized; refused != (!c.ok && rt.kind.scope() != "") {
				t.Errorf("%s by %s answered %d", rt.pattern, name, code)
			}
		}
	}
}

func TestOnlyTheTableAnswers(t *testing.T) {
	t.Parallel()
	s := New(acting(func() {}))
	known := map[string]bool{}
	for _, rt := range s.routes() {
		method, path := example(rt.pattern)
		known[method+" "+path] = true
	}
	for _, rt := range s.routes() {
		_, path := example(rt.pattern)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
			"PURGE", "get"} {
			r := hostile(method, path)
			r.Header.Set("Authorization", "Bearer "+testToken)
			code := answered(t, s, r)
			isKnown := known[method+" "+path] || method == "HEAD" && known["GET "+path] && !rt.kind.isHook()
			if (code == http.StatusNotFound) == isKnown && !strings.Contains(path, "m1") {
				t.Errorf("%s %s answered %d", method, path, code)
			}
		}
	}
}

func acting(act func()) *Options {
	return &Options{Token: testToken, Receiving: Receiving{
		Pause:  func(context.Context, string, api.Reason, string) (api.Paused, error) { act(); return api.Paused{}, nil },
		Resume: func(context.Context, string, bool) (api.Paused, error) { act(); return api.Paused{}, nil },
		Quiet:  func(string) error { act(); return nil }},
		Drain:  func(context.Context) error { act(); return nil },
		Deploy: func(context.Context, string) (api.DeployResult, error) { act(); return api.DeployResult{}, nil },
		Reload: func(context.Context) (api.ReloadResult, error) { act(); return api.ReloadResult{}, nil },
		Versions: VersionOptions{Versions: func(context.Context, bool) ([]api.AppVersion, error) { return nil, nil },
			Rollback:    func(context.Context, int) (api.DeployResult, error) { act(); return api.DeployResult{}, nil },
			AbortDeploy: func(context.Context) (api.Deployment, error) { act(); return api.Deployment{}, nil }}}
}

func fetched(r *http.Request, site, mode, dest string) {
	r.Header.Set("Sec-Fetch-Site", site)
	r.Header.Set("Sec-Fetch-Mode", mode)
	r.Header.Set("Sec-Fetch-Dest", dest)
}

func hostile(method, path string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	r.Host = "127.0.0.1:9325"
	r.Header.Set("Content-Type", "application/json")
	return r
}

func answered(t *testing.T, s *Server, r *http.Request) int {
	t.Helper()
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	h := rec.Header()
	if !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
		h.Get("Cache-Control") != "no-store" || bytes.Contains(rec.Body.Bytes(), []byte("<")) {
		t.Errorf("%s %s answered %d with\n%v\n%s", r.Method, r.URL, rec.Code, h, rec.Body)
	}
	return rec.Code
}
