package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPagesOfOtherSitesAreKeptOut(t *testing.T) {
	t.Parallel()
	h := newApp(t.TempDir())
	for _, test := range []struct {
		name, method, host string
		header             map[string]string
		want               int
	}{
		{"the daemon", http.MethodPost, "127.0.0.1:5000", nil, 200},
		{"the daemon, by name", http.MethodPost, "localhost", nil, 200},
		{"the gallery", http.MethodGet, "[::1]:5000", map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{"a link from elsewhere", http.MethodGet, "127.0.0.1:5000", map[string]string{"Sec-Fetch-Site": "cross-site"}, 200},
		{"a POST across sites", http.MethodPost, "127.0.0.1:5000",
			map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, 403},
		{"a POST from another port", http.MethodPost, "127.0.0.1:5000",
			map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:8080"}, 403},
		{"an older browser", http.MethodPost, "127.0.0.1:5000", map[string]string{"Origin": "https://evil.example"}, 403},
		{"no origin to tell", http.MethodPost, "127.0.0.1:5000", map[string]string{"Origin": "null"}, 403},
		{"a name that leads here", http.MethodPost, "evil.example:5000",
			map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example:5000"}, 421},
		{"a name that leads here, reading", http.MethodGet, "evil.example", nil, 421},
		{"a name that begins like ours", http.MethodGet, "localhost.evil.example", nil, 421},
		{"no host", http.MethodGet, "", nil, 421},
	} {
		path := "/"
		if test.method == http.MethodPost {
			path = "/tidy" // works without a body
		}
		r := httptest.NewRequest(test.method, path, strings.NewReader(""))
		r.Host = test.host
		for name, value := range test.header {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s: status %d, want %d: %s", test.name, w.Code, test.want, w.Body)
		}
	}
}
