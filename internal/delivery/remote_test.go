package delivery

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"tendril/internal/delivery/deliver"
	"tendril/internal/supervisor"
	"tendril/queue"
)

func TestHealthCheckAtATarget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		target, check string
		want          supervisor.Check
	}{
		{"http://localhost:8080/", "HTTP:8080/health", supervisor.Check{Port: 8080, Path: "/health"}},
		{"http://app:8080", "HTTP:8080/health", supervisor.Check{Host: "app", Port: 8080, Path: "/health"}},
		{"http://app", "TCP:80", supervisor.Check{Host: "app", Port: 80}},
		{"https://app/in", "HTTP:443/health", supervisor.Check{Host: "app", Port: 443, Path: "/health", TLS: true}},
		{"https://app:8443", "HTTP:8443/health", supervisor.Check{Host: "app", Port: 8443, Path: "/health", TLS: true}},
		{"https://app:8443", "HTTP:8081/health", supervisor.Check{Host: "app", Port: 8081, Path: "/health"}},
		{"http://[::1]:8080", "HTTP:8080/health", supervisor.Check{Host: "::1", Port: 8080, Path: "/health"}},
		{"unix:///run/app.sock", "HTTP:8080/health", supervisor.Check{Port: 8080, Path: "/health"}},
		{"http+unix://%2Frun%2Fapp.sock", "HTTP:8080/health", supervisor.Check{Port: 8080, Path: "/health"}},
	} {
		check, err := supervisor.ParseCheck(tt.check)
		if err != nil {
			t.Fatal(err)
		}
		if got := CheckAt(check, tt.target); got != tt.want {
			t.Errorf("%s of %s: %+v, want %+v", tt.check, tt.target, got, tt.want)
		}
	}
}

func TestRemoteAppGetsNewConnections(t *testing.T) {
	t.Parallel()
	before, after := newApp(t), newApp(t)
	target, invalid := before.URL, error(nil)
	r, err := NewRemote(func() (*deliver.Client, error) {
		if invalid != nil {
			return nil, invalid
		}
		return deliver.NewClient(&deliver.Options{Target: target})
	}, supervisor.Check{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	deliverOne := func() {
		t.Helper()
		if err := r.Probe(t.Context()); err != nil {
			t.Errorf("probe: %v", err)
		}
		if res := r.Deliver(t.Context(), &queue.Message{ID: "m", Body: "b"}); res.Outcome != queue.Done {
			t.Errorf("delivered: %+v", res)
		}
	}
	deliverOne()
	target = after.URL
	deliverOne()
	if err := r.Renew(); err != nil {
		t.Fatal(err)
	}
	deliverOne()
	invalid = errors.New("invalid certificate")
	if err := r.Renew(); !errors.Is(err, invalid) {
		t.Errorf("renewed with invalid settings: %v", err)
	}
	deliverOne()
	if b, a := before.posts.Load(), after.posts.Load(); b != 2 || a != 2 {
		t.Errorf("%d posts before and %d after, want 2 and 2", b, a)
	}
	if _, err := NewRemote(func() (*deliver.Client, error) { return nil, invalid }, supervisor.Check{}); err == nil {
		t.Error("opened with invalid settings")
	}
}

type app struct {
	*httptest.Server
	posts   atomic.Int32
	failing atomic.Bool
}

func newApp(t *testing.T) *app {
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			a.posts.Add(1)
		case a.failing.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func TestRemoteAppIsReadyWhenItsCheckPasses(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	u, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*deliver.Client, error) { return deliver.NewClient(&deliver.Options{Target: a.URL}) }
	probe := func(check supervisor.Check) error {
		r, err := NewRemote(open, check)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.Probe(t.Context())
	}
	checked := CheckAt(supervisor.Check{Port: port, Path: "/health"}, a.URL)
	if err := errors.Join(probe(checked), probe(supervisor.Check{})); err != nil {
		t.Errorf("healthy: %v", err)
	}
	a.failing.Store(true)
	if probe(checked) == nil || probe(supervisor.Check{}) != nil {
		t.Error("an app that fails its check is ready, or one without a check is not")
	}
	a.Close()
	if probe(checked) == nil || probe(supervisor.Check{}) == nil {
		t.Error("an app that does not listen is ready")
	}
}

func TestRemoteAppOverTLSIsCheckedByTheSettingsOfItsConnections(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(authority, pem.EncodeToMemory(&block), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, trusted := range map[string]bool{"trusted": true, "unknown": false} {
		opts := deliver.Options{Target: server.URL}
		if trusted {
			opts.TLS.CA = authority
		}
		r, err := NewRemote(func() (*deliver.Client, error) { return deliver.NewClient(&opts) },
			CheckAt(supervisor.Check{Port: port, Path: "/health"}, server.URL))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Probe(t.Context()); (err == nil) != trusted {
			t.Errorf("%s certificate: %v", name, err)
		}
		r.Close()
	}
}
