package tasks

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tendril/internal/registry"
	"tendril/internal/sqsapi"
)

func TestTokenIsSharedByTheEndpoint(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	token, err := Token(dir)
	if err != nil || len(token) < 32 {
		t.Fatalf("token of %d characters, %v", len(token), err)
	}
	if again, err := Token(dir); again != token || err != nil {
		t.Errorf("after a restart it is another one, %v", err)
	}
	path, err := ShareToken(state, "http://127.0.0.1:9324", token)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, filepath.Join(dir, TokenFile)} {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}
	for url, want := range map[string]string{
		"http://127.0.0.1:9324/000000000000/jobs": token,
		"http://localhost:9324/000000000000/jobs": token,
		"http://127.0.0.1:9325/000000000000/jobs": "",
		"":       "",
		"http:/": "",
	} {
		if got := SharedToken(state, url); got != want {
			t.Errorf("for %q there is a token: %t", url, got != "")
		}
	}
	if SharedToken("", "http://127.0.0.1:9324") != "" {
		t.Error("without a state folder there is a token")
	}
}

// The server gets no token. Its registry is used only if it checks signatures.
func TestServerWithoutProofOfTheToken(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	serveRegistry := func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"Last":{}}`) }
	sign := func(r *http.Request, _ []byte) error { r.Header.Set("Authorization", "signed"); return nil }
	for name, c := range map[string]struct {
		serve     http.HandlerFunc
		sign      func(*http.Request, []byte) error
		found     bool
		undecided string
	}{
		"an impostor, or an older version": {serve: func(w http.ResponseWriter, _ *http.Request) { serveRegistry(w) },
			undecided: "--registry-insecure"},
		"another SQS server": {serve: http.NotFound},
		"a server in trouble": {undecided: "status 502",
			serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }},
		"an older version that wants signatures": {sign: sign, found: true,
			serve: func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				serveRegistry(w)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if said := fmt.Sprint(r.Header); strings.Contains(said, token) {
					t.Errorf("it got %s", said)
				}
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				c.serve(w, r)
			}))
			defer s.Close()
			as := sqsapi.Identity{Token: token, Sign: c.sign}
			client, err := findRegistry(t.Context(), s.URL, registry.Scope{}, as)
			found := client != nil
			if found != c.found || (err == nil) != (c.undecided == "") || err != nil &&
				!strings.Contains(err.Error(), c.undecided) {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
}
