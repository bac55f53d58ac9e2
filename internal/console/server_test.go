package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tendril/api"
	"tendril/internal/observe/health"
)

const testToken = "the-token"

func exchange(t *testing.T, h http.Handler, r *http.Request) (int, map[string]any) {
	t.Helper()
	if r.Host == "example.com" { // the default of httptest.NewRequest
		r.Host = "127.0.0.1:9325"
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	var body map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil && r.Method != http.MethodHead {
		t.Errorf("%s %s answered no JSON object: %q", r.Method, r.URL, rec.Body)
	}
	if kind := rec.Header().Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s: Content-Type %q", r.Method, r.URL, kind)
	}
	if s, ok := h.(*Server); ok && allowedHost(r.Host, s.opts.Access.Hosts) {
		checkContract(t, s, r, rec.Code, rec.Body.Bytes())
	}
	for name := range rec.Header() {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s %s: header %s lets other sites in", r.Method, r.URL, name)
		}
	}
	return rec.Code, body
}

func get(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

func post(path, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return with(r, "Authorization", "Bearer "+testToken)
}

func with(r *http.Request, name, value string) *http.Request {
	r.Header.Set(name, value)
	return r
}

func example(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, strings.NewReplacer("{name}", "jobs", "{id}", "m1").Replace(path)
}

func TestEveryProtectedRouteNeedsTheToken(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Receiving: Receiving{Pause: func(context.Context, string, api.Reason, string) (api.Paused, error) {
		return api.Paused{Paused: true}, nil
	},
		Resume: func(context.Context, string, bool) (api.Paused, error) { return api.Paused{}, nil }}, Drain: func(context.Context) error { return nil }})
	for _, rt := range s.routes() {
		method, path := example(rt.pattern)
		if method != http.MethodGet && !rt.kind.acts() {
			t.Errorf("%s changes something and is not declared to", rt.pattern)
		}
		if strings.Contains(path, "/-/") && !rt.kind.isHook() {
			t.Errorf("%s is not declared a hook", rt.pattern)
		}
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + testToken + "x",
			"Basic " + testToken, testToken, "Bearer \x00"} {
			r := httptest.NewRequest(method, path, strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			if header != "" {
				r.Header.Set("Authorization", header)
			}
			code, body := exchange(t, s, r)
			if got, want := code == http.StatusUnauthorized, rt.kind != open; got != want {
				t.Errorf("%s with Authorization %q answered %d: %v", rt.pattern, header, code, body)
			}
		}
		r := httptest.NewRequest(method, path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		if code, body := exchange(t, s, with(r, "Authorization", "bearer  "+testToken)); code == http.StatusUnauthorized {
			t.Errorf("%s refused the right token: %v", rt.pattern, body)
		}
	}
}

func TestNoTokenLetsNobodyIn(t *testing.T) {
	t.Parallel()
	s := New(nil)
	for _, header := range []string{"", "Bearer", "Bearer "} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/drain", strings.NewReader("{}"))
		r.Header.Set("Authorization", header)
		if code, _ := exchange(t, s, r); code != http.StatusUnauthorized {
			t.Errorf("Authorization %q answered %d", header, code)
		}
	}
}

func TestUnknownRoutesAre404(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken})
	for _, line := range []string{
		"GET /", "GET /api", "GET /api/v1", "GET /api/v1/", "GET /api/v1/nothing", "GET /livez/", "GET //livez",
		"GET /api/../livez", "GET /debug/pprof/",
		"POST /livez", "PUT /api/v1/queues/jobs/pause", "GET /api/v1/queues/jobs/purge", "PUT /api/v1/queues/jobs",
		"PATCH /api/v1/status",
		"POST /api/v1/queues/jobs/messages/m1", "DELETE /api/v1/queues/jobs/messages", "OPTIONS /api/v1/status",
		"GET /api/v1/drain", "TRACE /livez",
		"HEAD /-/drain", "GET /-/quiet", "GET /-/reload", "GET /-/", "DELETE /-/drain", "GET /api/v1/deploy",
		"POST /api/v1/health",
	} {
		method, path, _ := strings.Cut(line, " ")
		r := with(httptest.NewRequest(method, path, nil), "Authorization", "Bearer "+testToken)
		code, body := exchange(t, s, r)
		if code != http.StatusNotFound || !strings.Contains(body["error"].(string), path) {
			t.Errorf("%s answered %d %v, want 404", line, code, body)
		}
	}
}

func TestHostsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	s := New(&Options{Access: Access{Hosts: []string{"console.internal", "192.0.2.7"}}})
	for host, want := range map[string]int{
		"127.0.0.1:9325": 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "[::1]:9325": 200, "[::1]": 200, "localhost:9325": 200,
		"LOCALHOST":           200,
		"console.internal:80": 200, "Console.Internal": 200, "192.0.2.7:9325": 200,
		"": 403, "evil.test": 403, "evil.test:9325": 403, "localhost.evil.test": 403, "127.0.0.1.evil.test": 403,
		"10.0.0.1:9325": 403, "0.0.0.0:9325": 403,
		"[::]:9325": 403, "169.254.169.254": 403, "localhost.": 403, ":9325": 403, "192.0.2.8": 403,
	} {
		r := get("/livez")
		r.Host = host
		if code, body := exchange(t, s, r); code != want {
			t.Errorf("Host %q answered %d %v, want %d", host, code, body, want)
		}
	}
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Receiving: Receiving{Pause: func(context.Context, string, api.Reason, string) (api.Paused, error) {
		return api.Paused{Paused: true}, nil
	}}})
	const path = "/api/v1/queues/jobs/pause"
	for name, c := range map[string]struct {
		r    *http.Request
		want int
	}{
		"a program":                    {post(path, "{}"), 200},
		"our own page":                 {with(post(path, "{}"), "Sec-Fetch-Site", "same-origin"), 200},
		"another site":                 {with(post(path, "{}"), "Sec-Fetch-Site", "cross-site"), 403},
		"another port":                 {with(post(path, "{}"), "Sec-Fetch-Site", "same-site"), 403},
		"an old browser":               {with(post(path, "{}"), "Origin", "https://evil.test"), 403},
		"a sandboxed frame":            {with(post(path, "{}"), "Origin", "null"), 403},
		"a form":                       {with(post(path, "a=b"), "Content-Type", "application/x-www-form-urlencoded"), 415},
		"a form that plays JSON":       {with(post(path, "{}"), "Content-Type", "text/plain"), 415},
		"no type at all":               {with(post(path, "{}"), "Content-Type", ""), 415},
		"JSON with a character set":    {with(post(path, "{}"), "Content-Type", "application/json; charset=utf-8"), 200},
		"a body beyond the bound":      {post(path, `{"reason":"`+strings.Repeat("x", api.MaxBody)+`"}`), 413},
		"an unknown field":             {post(path, `{"raeson":"x"}`), 400},
		"two values":                   {post(path, `{}{}`), 400},
		"no JSON":                      {post(path, `x`), 400},
		"an empty body":                {post(path, ``), 200},
		"a reason that is no reason":   {post(path, `{"reason":"`+strings.Repeat("x", maxReason+1)+`"}`), 400},
		"a reason of another type":     {post(path, `{"reason":1}`), 400},
		"a rebound name with its page": {rebound(path), 403},
	} {
		code, body := exchange(t, s, c.r)
		if code != c.want {
			t.Errorf("%s: answered %d %v, want %d", name, code, body, c.want)
		}
		if _, said := body["hint"]; code >= 400 && !said {
			t.Errorf("%s: %v has no hint", name, body)
		}
	}
}

// After DNS rebinding, Host and Origin match.
func rebound(path string) *http.Request {
	r := with(post(path, "{}"), "Origin", "http://evil.test:9325")
	r.Host = "evil.test:9325"
	return r
}

func TestHealthIsOpen(t *testing.T) {
	t.Parallel()
	checks := []health.Check{{Name: "queue", OK: true}, {Name: "app", Detail: "connection refused"}}
	s := New(&Options{Probes: Probes{Ready: func() []health.Check { return checks }}})
	for _, path := range []string{"/livez", "/healthz"} {
		if code, body := exchange(t, s, get(path)); code != 200 || body["status"] != "ok" {
			t.Errorf("%s: %d %v", path, code, body)
		}
	}
	code, body := exchange(t, s, get("/readyz"))
	if code != 503 || body["ready"] != false || len(body["checks"].([]any)) != 1 {
		t.Errorf("/readyz: %d %v; want the one check that fails", code, body)
	}
	code, body = exchange(t, s, get("/readyz?verbose"))
	if code != 503 || len(body["checks"].([]any)) != 2 {
		t.Errorf("/readyz?verbose: %d %v; want both checks", code, body)
	}
	checks[1].OK = true
	if code, body = exchange(t, s, get("/readyz")); code != 200 || body["ready"] != true {
		t.Errorf("/readyz: %d %v; want 200", code, body)
	}
	if code, _ := exchange(t, s, httptest.NewRequest(http.MethodHead, "/livez", nil)); code != 200 {
		t.Errorf("HEAD /livez: %d", code)
	}
}

func TestWithoutItsPartsARouteSaysSo(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken})
	for want, requests := range map[string][]*http.Request{
		"no embedded queues": {
			get("/api/v1/queues"), get("/api/v1/queues/jobs"),
			with(get("/api/v1/queues/jobs/messages"), "Authorization", "Bearer "+testToken),
			with(get("/api/v1/queues/jobs/messages/m1"), "Authorization", "Bearer "+testToken),
			post("/api/v1/queues/jobs/purge", "{}"), post("/api/v1/queues/jobs/move", `{"ids":["m1"]}`),
			post("/api/v1/queues/jobs/delete", `{"ids":["m1"]}`),
			with(httptest.NewRequest(http.MethodDelete, "/api/v1/queues/jobs/messages/m1", nil), "Authorization",
				"Bearer "+testToken),
		},
		"no app runs here":             {post("/api/v1/deploy", "{}")},
		"has no health monitor":        {get("/api/v1/health")},
		"does not receive from queues": {get("/api/v1/scale")},
		"no periodic tasks": {
			get("/api/v1/tasks"), get("/api/v1/tasks/tidy/history"), get("/api/v1/history"),
			post("/api/v1/tasks/tidy/run", "{}"),
			post("/api/v1/tasks/tidy/pause", "{}"), post("/api/v1/tasks/tidy/resume", "{}"),
		},
		"nothing to reload": {post("/api/v1/reload", "{}"), post("/-/reload", "")},
	} {
		for _, r := range requests {
			code, body := exchange(t, s, r)
			if code != http.StatusConflict || !strings.Contains(body["error"].(string), want) || body["hint"] == "" {
				t.Errorf("%s %s: %d %v; want 409 saying %q", r.Method, r.URL, code, body, want)
			}
		}
	}
	tasks := false
	crew := crew(new([]string))
	crew.Any = func() bool { return tasks }
	s = New(&Options{Token: testToken, Tasks: crew})
	for _, want := range []int{http.StatusConflict, http.StatusOK} {
		if code, body := exchange(t, s, get("/api/v1/tasks")); code != want {
			t.Errorf("tasks that come while it runs: %d %v, want %d", code, body, want)
		}
		tasks = true
	}
}

func TestActsAreLoggedWithoutReasons(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := New(&Options{Token: testToken, Logger: textLogger(&log),
		Receiving: Receiving{Resume: func(context.Context, string, bool) (api.Paused, error) { return api.Paused{}, nil }}})
	exchange(t, s, post("/api/v1/queues/jobs/resume", "{}"))
	exchange(t, s, get("/api/v1/status"))
	if got := strings.Count(log.String(), "\n"); got != 1 ||
		!strings.Contains(log.String(), "/api/v1/queues/jobs/resume") {
		t.Errorf("log: %q; want one line for the act", &log)
	}
	if strings.Contains(log.String(), testToken) {
		t.Error("the log holds the token")
	}
}

// Each empty object would take a hundred bytes once decoded.
func TestRequestsOfManyValuesAreRefused(t *testing.T) {
	t.Parallel()
	s := New(&Options{Token: testToken, Broker: newBroker(t)})
	for name, body := range map[string]string{
		"objects": `{"messages":[` + strings.Repeat("{},", 2_000_000) + `{}]}`,
		"arrays":  `{"messages":` + strings.Repeat("[", 2_000_000),
		"numbers": `{"ids":[` + strings.Repeat("1,", 2_000_000) + `1]}`,
	} {
		code, answer := exchange(t, s, post("/api/v1/queues/jobs/messages", body))
		if text, _ := answer["error"].(string); code != http.StatusBadRequest ||
			!strings.Contains(text, "more than 10000 JSON values") {
			t.Errorf("%s: %d %v", name, code, answer)
		}
	}
	quoted := `{"messages":[{"body":"` + strings.Repeat(`,[{\\\"`, 20_000) + `"}]}`
	if code, answer := exchange(t, s, post("/api/v1/queues/jobs/messages", quoted)); code == http.StatusBadRequest &&
		strings.Contains(answer["error"].(string), "JSON values") {
		t.Errorf("what is in a string was counted: %v", answer)
	}
}

func TestHTTPServerHasLimits(t *testing.T) {
	t.Parallel()
	srv := HTTPServer(New(nil))
	if srv.ReadHeaderTimeout == 0 || srv.ReadTimeout <= api.MaxWait || srv.WriteTimeout <= api.MaxWait || srv.IdleTimeout == 0 ||
		srv.MaxHeaderBytes == 0 {
		t.Errorf("limits are missing: %+v", srv)
	}
}
