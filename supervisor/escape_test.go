package supervisor

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestAppendEscaped(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"plain text, with\ttabs", "plain text, with\ttabs"},
		{"größer → 東京 🙂", "größer → 東京 🙂"},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"\x1b]0;title\x07", `\x1b]0;title\x07`},
		{"10%\r20%", `10%\r20%`},
		{"a\nb\x00c\x7f", `a\nb\x00c\x7f`},
		{"c1 \u009b31m", `c1 \u{9b}31m`},
		{"bad \xff\xc3 utf8", `bad \xff\xc3 utf8`},
		{"admin\u202euser", `admin\u{202e}user`},
		{"line\u2028two\ufeff", `line\u{2028}two\u{feff}`},
		{"", ""},
	}
	for _, tt := range tests {
		if got := string(appendEscaped(nil, []byte(tt.in))); got != tt.want {
			t.Errorf("escaping %q gives %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzAppendEscaped(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[2J", "\xff\xfe", "a\u202eb", "\u009b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := string(appendEscaped([]byte("> "), in))
		text, ok := strings.CutPrefix(out, "> ")
		if !ok || !utf8.ValidString(text) {
			t.Fatalf("escaping %q gives %q", in, out)
		}
		for _, r := range text {
			if r != '\t' && (unicode.IsControl(r) || isHidden(r)) {
				t.Fatalf("escaping %q lets %U through", in, r)
			}
		}
		if again := string(appendEscaped(nil, []byte(text))); again != text {
			t.Fatalf("escaping %q twice changes it to %q", text, again)
		}
	})
}
