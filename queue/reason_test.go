package queue

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFailureGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status               int
		answer, reason, want string
	}{
		{422, `{"error":"missing customer_id"}`, "HTTP 422", "HTTP 422 missing customer_id"},
		{422, `{"error":{"code":7,"message":"no customer 4711"}}`, "", "HTTP 422 no customer #"},
		{422, `{"code":7}`, "", `HTTP 422 {"code":#}`},
		{500, "ValueError: invalid literal '12a'\n  at app.py:17", "", "HTTP 500 ValueError: invalid literal '#a'"},
		{500, "", "HTTP 500", "HTTP 500"},
		{404, "order 8f3a21bc-0000-4000-8000-0123456789AB not found", "", "HTTP 404 order * not found"},
		{404, "order ord_8f3a21 of utf8 not found", "", "HTTP 404 order ord_* of utf# not found"},
		{503, "  \n\tbusy,\x1b[31m later  on\u2028", "", "HTTP 503 busy, [#m later on"},
		{0, "", "no response within 3m0s", "no response within 3m0s"},
		{0, "", "", ""},
		{500, strings.Repeat("ä", 300), "", "HTTP 500 " + strings.Repeat("ä", 95)},
	} {
		if got := FailureGroup(c.status, c.reason, c.answer); got != c.want {
			t.Errorf("%d %q %q: %q, want %q", c.status, c.answer, c.reason, got, c.want)
		}
	}
}

func FuzzFailureGroup(f *testing.F) {
	f.Add(500, "order 8f3a21bc-0000-4000-8000-0123456789AB\n", "x")
	f.Add(0, `{"error":{"message":"no 4711"}}`, "no response within 3m")
	f.Fuzz(func(t *testing.T, status int, answer, reason string) {
		got := FailureGroup(status, reason, answer)
		if len(got) > maxFailureGroup || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool {
			return r != ' ' && notInReason(r)
		}) {
			t.Errorf("the group is %q", got)
		}
	})
}
