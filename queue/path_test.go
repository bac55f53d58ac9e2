package queue

import (
	"net/url"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ raw, target string }{
		{"/", "/"},
		{"/worker/queue", "/worker/queue"},
		{"/scheduled?task=a&b=/c//d", "/scheduled?task=a&b=/c//d"},
		{"/q?", "/q?"},
		{"/q?a=b?c", "/q?a=b?c"},
		{"/täglich", "/t%C3%A4glich"},
		{"/t%C3%A4glich", "/t%C3%A4glich"},
		{"/a b?c d=ü", "/a%20b?c%20d=%C3%BC"},
		{"/a%20b", "/a%20b"},
		{"/a%2Fb", "/a%2Fb"},
		{"/100%25", "/100%25"},
		{"/...", "/..."},
		{"/a..b", "/a..b"},
		{"/.well-known", "/.well-known"},
		{"/user@host", "/user@host"},
		{"/http:x", "/http:x"},
		{"/a;b=c", "/a;b=c"},
		{"/" + strings.Repeat("a", MaxPath-1), "/" + strings.Repeat("a", MaxPath-1)},
	} {
		got, err := ParsePath(test.raw)
		if err != nil || got != test.target {
			t.Errorf("ParsePath(%q) = %q, %v; want %q", test.raw, got, err, test.target)
		}
	}
}

func TestParsePathRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ raw, why string }{
		{"", "does not start with a slash"},
		{"worker", "does not start with a slash"},
		{"@evil.example/", "does not start with a slash"},
		{"http://evil.example/", "does not start with a slash"},
		{"?a=b", "does not start with a slash"},
		{"*", "does not start with a slash"},
		{"//evil.example/", "two slashes"},
		{"///", "two slashes"},
		{"/a//b", "two slashes"},
		{"/%2fevil.example", "two slashes"},
		{"/%252fevil.example", "two slashes"},
		{"/\\evil.example", "backslash"},
		{"/%5cevil.example", "backslash"},
		{"/%255Cevil.example", "backslash"},
		{"/..", "dot-dot"},
		{"/a/../b", "dot-dot"},
		{"/a/%2e%2e/b", "dot-dot"},
		{"/a/.%2e", "dot-dot"},
		{"/a/%252e%252e/b", "dot-dot"},
		{"/a%2f..%2fb", "dot-dot"},
		{"/a/..;x/b", "dot-dot"},
		{"/a\r\nHost: evil.example", "control byte"},
		{"/a%0d%0aHost: evil.example", "control byte"},
		{"/a%00", "control byte"},
		{"/a\x7f", "control byte"},
		{"/a?b\nc", "control byte"},
		{"/a#b", "fragment"},
		{"/a?b#c", "fragment"},
		{"/%", "percent-escape"},
		{"/%zz", "percent-escape"},
		{"/%" + strings.Repeat("25", 100) + "41", "too deep"},
		{"/" + strings.Repeat("a", MaxPath), "2048 bytes"},
		{"/" + strings.Repeat("ü", MaxPath/3), "2048 bytes"},
	} {
		got, err := ParsePath(test.raw)
		if err == nil || !strings.Contains(err.Error(), test.why) {
			t.Errorf("ParsePath(%q) = %q, %v; want it refused: %s", test.raw, got, err, test.why)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"/", "/a?b=c", "//evil", "/%2e%2e/", "/\\x", "/a b", "/%25252e", "/ü?ü", "/..;/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		target, err := ParsePath(raw)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 80 {
				t.Errorf("the error repeats the path: %q", err)
			}
			return
		}
		for i := range len(target) {
			if target[i] <= ' ' || target[i] >= 0x7f {
				t.Fatalf("%q gives %q, which no request line can carry", raw, target)
			}
		}
		base := &url.URL{Scheme: "http", Host: "localhost:5000"}
		ref, err := url.Parse(target)
		if err != nil {
			t.Fatalf("%q gives %q: %v", raw, target, err)
		}
		at := base.ResolveReference(ref)
		if at.Host != base.Host || at.Scheme != base.Scheme || at.User != nil {
			t.Errorf("%q leads to %s", raw, at)
		}
		path, _, _ := strings.Cut(raw, "?")
		decoded, err := url.PathUnescape(path)
		if err != nil || ref.Path != decoded {
			t.Errorf("%q reaches the path %q, want %q", raw, ref.Path, decoded)
		}
		if again, err := ParsePath(target); err != nil || again != target {
			t.Errorf("%q gives %q, which gives %q, %v", raw, target, again, err)
		}
	})
}
