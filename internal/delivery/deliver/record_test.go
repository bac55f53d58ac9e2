package deliver

import (
	"slices"
	"strings"
	"testing"

	"tendril/queue"
)

func TestExchangesAreRecordedOnRequest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", exchangeBody+10)
	for _, tt := range []struct {
		name, answer string
		status, body string
		headers      []string
		fails        bool
	}{
		{"done", "HTTP/1.1 200 Fine\r\nX-B: 2\r\nX-A: 1\r\nSet-Cookie: s=secret\r\nContent-Length: 5\r\n\r\nhello",
			"HTTP/1.1 200 Fine", "hello", []string{"Content-Length: 5", "Set-Cookie: (hidden)", "X-A: 1", "X-B: 2"}, false},
		{"failed", "HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nbad", "HTTP/1.1 500 No", "bad", []string{"Content-Length: 3"},
			false},
		{"long", "HTTP/1.1 404 Gone\r\nConnection: close\r\n\r\n" + long, "HTTP/1.1 404 Gone", long[:exchangeBody],
			[]string{"Connection: close"}, false},
		{"none", "", "", "", nil, true},
	} {
		var recorded []*Exchange
		once := func(c *appConn) {
			for _, ok := c.read(); ok; _, ok = c.read() {
				if c.write(tt.answer); tt.fails || strings.Contains(tt.answer, "Connection: close") {
					return
				}
			}
		}
		c, a := start(t, once, func(o *Options) {
			o.Events.Record = func(m *queue.Message) func(*Exchange) {
				if m.ID != "m1" {
					return nil
				}
				return func(x *Exchange) { recorded = append(recorded, x) }
			}
		})
		asked := message(text("kind", "x"), text("Token", "secret"))
		asked.ID, asked.Body = "m1", "body\n"
		c.Deliver(t.Context(), asked)
		other := *asked
		other.ID = "m2"
		c.Deliver(t.Context(), &other)
		if a.posts.Load() != 2 || len(recorded) != 1 {
			t.Fatalf("%s: %d exchanges of %d posts were recorded", tt.name, len(recorded), a.posts.Load())
		}
		x := recorded[0]
		if x.Head[0] != "POST / HTTP/1.1" || x.Body != "body\n" || !slices.Contains(x.Head, "X-Aws-Sqsd-Msgid: m1") ||
			!slices.Contains(x.Head, "X-Aws-Sqsd-Attr-kind: x") && !slices.Contains(x.Head, "X-Aws-Sqsd-Attr-Kind: x") ||
			!slices.Contains(x.Head, "X-Aws-Sqsd-Attr-Token: (hidden)") || x.Began.IsZero() {
			t.Errorf("%s: the request %q %q", tt.name, x.Head, x.Body)
		}
		if (x.Err != nil) != tt.fails || x.AnswerBody != tt.body {
			t.Errorf("%s: the answer's body is %q, %v", tt.name, x.AnswerBody, x.Err)
		}
		if want := append([]string{tt.status}, tt.headers...); !tt.fails && !slices.Equal(x.Answer, want) {
			t.Errorf("%s: the answer is %q, want %q", tt.name, x.Answer, want)
		}
		if strings.Contains(strings.Join(append(x.Head, x.Answer...), "\n"), "secret") {
			t.Errorf("%s: a secret is shown in %q", tt.name, x)
		}
	}
}
