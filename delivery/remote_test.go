package delivery

import (
	"testing"

	"tendril/supervisor"
)

// TestHealthCheckAtATarget: it asks the host of the target, in its protocol.
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
