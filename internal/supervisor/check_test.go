package supervisor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"tendril/internal/testing/testpeer"
)

func TestParseCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want Check
		ok   bool
	}{
		{"TCP:5000", Check{Port: 5000}, true},
		{"tcp:1", Check{Port: 1}, true},
		{"HTTP:80/health?deep=1", Check{Port: 80, Path: "/health?deep=1"}, true},
		{"http:65535/", Check{Port: 65535, Path: "/"}, true},
		{"HTTP:8080", Check{Port: 8080, Path: "/"}, true},
		{"", Check{}, false},
		{"TCP", Check{}, false},
		{"TCP:0", Check{}, false},
		{"TCP:65536", Check{}, false},
		{"TCP:80/path", Check{}, false},
		{"HTTP:/path", Check{}, false},
		{"HTTP:80/a b", Check{}, false},
		{"HTTP:80/a#b", Check{}, false},
		{"HTTP:80//\x00", Check{}, false},
		{"UDP:53", Check{}, false},
		{"/health", Check{}, false},
	}
	for _, tt := range tests {
		got, err := ParseCheck(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseCheck(%q) = %+v, %v, want %+v", tt.in, got, err, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), "use TCP:port") {
			t.Errorf("ParseCheck(%q) error %q does not say what to write", tt.in, err)
		}
	}
	if s := (Check{}).String(); s != "" {
		t.Errorf("no check prints as %q", s)
	}
}

func FuzzParseCheck(f *testing.F) {
	for _, seed := range []string{"TCP:5000", "HTTP:80/x", "http:1", "TCP:-1", "HTTP:80/%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := ParseCheck(in)
		if err != nil {
			return
		}
		if again, err := ParseCheck(c.String()); err != nil || again != c {
			t.Errorf("ParseCheck(%q) = %+v, which prints as %q and reads as %+v, %v", in, c, c, again, err)
		}
	})
}

func TestProbe(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.PathValue("code"))
		w.Header().Set("Location", "/status/500")
		w.WriteHeader(code)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	_, deaf := testpeer.BoundSocket(t)
	tests := []struct {
		check Check
		want  string
	}{
		{Check{Port: port}, ""},
		{Check{Port: port, Path: "/status/200"}, ""},
		{Check{Port: port, Path: "/status/204"}, ""},
		{Check{Port: port, Path: "/status/302?token=secret"}, fmt.Sprintf("GET http://localhost:%d/status/302: "+
			"status 302 to http://localhost:%[1]d/status/500; 200 to 299 is expected", port)},
		{Check{Port: port, Path: "/status/404"}, "/status/404: status 404; 200 to 299 is expected"},
		{Check{Port: port, Path: "/status/503"}, "/status/503: status 503;"},
		{Check{Port: deaf}, fmt.Sprintf("TCP connection to localhost:%d: connection refused, nothing is listening", deaf)},
		{Check{Port: deaf, Path: "/health?token=secret"},
			fmt.Sprintf("GET http://localhost:%d/health: connection refused, nothing is listening", deaf)},
		{Check{Host: "127.0.0.1", Port: port}, ""},
		{Check{Host: "127.0.0.1", Port: port, Path: "/status/204"}, ""},
		{Check{Host: "127.0.0.1", Port: deaf}, fmt.Sprintf("TCP connection to 127.0.0.1:%d: connection refused", deaf)},
		{Check{Host: "127.0.0.1", Port: port, Path: "/status/204", TLS: true}, "GET https://127.0.0.1"},
	}
	for _, tt := range tests {
		err := tt.check.Probe(context.Background())
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("probing %s: %v, want %q", tt.check, err, tt.want)
		}
	}
}

func TestProbeReachesIPv6(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("SKIPPED: no IPv6 loopback here: %v", err)
	}
	defer ln.Close()
	c := Check{Port: ln.Addr().(*net.TCPAddr).Port}
	if err := c.Probe(context.Background()); err != nil {
		t.Errorf("probing a listener on ::1: %v", err)
	}
	if !PortTaken(c.Port) {
		t.Error("its port counts as free")
	}
}
