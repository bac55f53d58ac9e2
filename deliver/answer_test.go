package deliver

import (
	"net/http"
	"strings"
	"testing"
)

func TestAnswerHead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", answerShown)
	for _, tt := range []struct{ name, kind, coding, body, want string }{
		{"text", "text/plain; charset=utf-8", "", "\n  database is locked \r\nat line 3\n", "database is locked"},
		{"JSON", "application/json", "", "{\n  \"error\": \"no such order\"\n}\n", `{ "error": "no such order" }`},
		{"a problem", "application/problem+json", "", `{"title":"out of stock"}`, `{"title":"out of stock"}`},
		{"a page", "text/html", "", "<!DOCTYPE html><HTML><head><Title lang=en>KeyError at /worker\n</title><body>...",
			"KeyError at /worker"},
		{"a page without a title", "text/html", "", "<html><body>secret", ""},
		{"a page whose title is cut off", "text/html", "", "<title>x", ""},
		{"no kind", "", "", "oops", "oops"},
		{"no kind and no text", "", "", "\x00\x01\x02", ""},
		{"an image", "image/png", "", "\x89PNG", ""},
		{"compressed", "text/plain", "gzip", "\x1f\x8b", ""},
		{"escapes of a terminal", "text/plain", "", "a\x1b[31mb\x07\u202ec\u0085d", `a\x1b[31mb\a\u202ec d`},
		{"not UTF-8", "text/plain", "", "a\xffb", "ab"},
		{"long", "text/plain", "", long + "y", long + "..."},
		{"as long as may be", "text/plain", "", long, long},
		{"nothing", "text/plain", "", " \n\n", ""},
	} {
		header := http.Header{}
		if tt.kind != "" {
			header.Set("Content-Type", tt.kind)
		}
		if tt.coding != "" {
			header.Set("Content-Encoding", tt.coding)
		}
		if got, _ := answerHead(header, []byte(tt.body)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestExcerptSaysMoreThanOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, kind, body, want string }{
		{"one line", "text/plain", "database is locked\n", ""},
		{"lines", "text/plain", "\nKeyError\n  at line 3\n", "KeyError\n  at line 3"},
		{"JSON", "application/json", "{\n \"error\": 1 }", "{\n \"error\": 1 }"},
		{"long", "text/plain", strings.Repeat("x", 3*answerExcerpt), strings.Repeat("x", answerExcerpt)},
		{"a page", "text/html", "<title>KeyError</title><body>...", ""},
		{"no text", "image/png", "\x89PNG", ""},
	} {
		_, got := answerHead(http.Header{"Content-Type": {tt.kind}}, []byte(tt.body))
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
