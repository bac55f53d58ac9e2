package deliver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tendril/queue"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		value string
		want  time.Duration
	}{
		{"", 0},
		{"0", 0},
		{"1", time.Second},
		{" 120 ", 2 * time.Minute},
		{"43200", queue.MaxVisibility},
		{"43201", queue.MaxVisibility},
		{"99999999999999999999999", queue.MaxVisibility},
		{"-1", 0},
		{"+1", 0},
		{"1.5", 0},
		{"soon", 0},
		{"Fri, 20 Nov 2026 12:01:30 GMT", 90 * time.Second},
		{"Friday, 20-Nov-26 12:01:30 GMT", 90 * time.Second},
		{"Fri, 20 Nov 2026 11:00:00 GMT", 0},
		{"Fri, 20 Nov 2037 11:00:00 GMT", queue.MaxVisibility},
		{"Fri, 20 Nov 9999 11:00:00 GMT", queue.MaxVisibility},
		{"Fri, 20 Nov 0001 11:00:00 GMT", 0},
	} {
		if got := retryAfter(test.value, now); got != test.want {
			t.Errorf("Retry-After: %s gives %v, want %v", test.value, got, test.want)
		}
	}
}

func TestStatusReasons(t *testing.T) {
	t.Parallel()
	h := newHTTP(t, func(o *Options) { o.Path = "/worker?key=secret" })
	for _, test := range []struct {
		code     int
		location string
		want     string
	}{
		{500, "", "HTTP 500"},
		{503, "", "HTTP 503"},
		{429, "", "HTTP 429"},
		{400, "", "HTTP 400"},
		{401, "", "HTTP 401 (the app requires a login)"},
		{403, "", "HTTP 403 (refused; a CSRF or host check?)"},
		{404, "", "HTTP 404 for POST /worker (check http_path)"},
		{405, "", "HTTP 405 for POST /worker (check http_path)"},
		{413, "", "HTTP 413 (the message is too long for the app)"},
		{431, "", "HTTP 431 (the attributes are too long for the app)"},
		{201, "", "HTTP 201 (not among the success codes)"},
		{200, "", "HTTP 200 (not among the success codes)"},
		{299, "", "HTTP 299 (not among the success codes)"},
		{300, "/", "HTTP 300 to / (redirects are not followed)"},
		{399, "/", "HTTP 399 to / (redirects are not followed)"},
		{308, "/" + strings.Repeat("x", maxLocation-1),
			"HTTP 308 to /" + strings.Repeat("x", maxLocation-1) + " (redirects are not followed)"},
		{302, "/login", "HTTP 302 to /login (redirects are not followed)"},
		{301, "//example.org/a", "HTTP 301 to //example.org/a (redirects are not followed)"},
		{302, "/login?token=secret#secret", "HTTP 302 to /login (redirects are not followed)"},
		{301, "https://user:secret@example.com:8443/worker", "HTTP 301 to https://example.com:8443/worker (redirects are not followed)"},
		{307, "", "HTTP 307 (redirects are not followed)"},
		{307, "?a", "HTTP 307 (redirects are not followed)"},
		{307, "http://[::1", "HTTP 307 (redirects are not followed)"},
		{307, "/a\r\nb", "HTTP 307 (redirects are not followed)"},
		{308, "/" + strings.Repeat("x", 200),
			"HTTP 308 to /" + strings.Repeat("x", 79) + "... (redirects are not followed)"},
		{304, "", "HTTP 304 (redirects are not followed)"},
	} {
		head := &http.Response{StatusCode: test.code, Header: http.Header{"Location": {test.location}}}
		if got := h.reasons.statusReason(head, nil); got != test.want {
			t.Errorf("%d %s: %q, want %q", test.code, test.location, got, test.want)
		}
	}
	task := &scheduledRun{&queue.Run{Path: "/secret"}, "/secret"}
	for code, want := range map[int]string{
		404: "HTTP 404 (no route for the task's path)",
		405: "HTTP 405 (the task's path does not accept POST)",
	} {
		if got := h.reasons.statusReason(&http.Response{StatusCode: code}, task); got != want {
			t.Errorf("a task: %q, want %q", got, want)
		}
	}
}
