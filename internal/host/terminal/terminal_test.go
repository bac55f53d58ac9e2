package terminal

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"
)

var hostile = []string{
	"\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://evil\x1b\\", "\x1bPq", "\x1b[8m", "\x1b[30m", "\x1b[6n", "\x1b[31",
	"\x1b[31;8m", "\x1b",
	"\x07", "\b", "\r", "\x00", "\x7f", "\u009b2J", "\x9b2J", "\u202e", "\u2066", "\u061c", "\u200e", "\u2028", "\ufeff",
	"\U000e0041", "\xe2\x80",
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain ~":             "plain ~",
		"é 漢 👩\u200d💻\u00a0x": "é 漢 👩\u200d💻\u00a0x",
		"a\x1b[31mb":          `a\x1b[31mb`,
		"a\u202eb\u009bc":     `a\u202eb\u009bc`,
		"\xff\ufffd":          "\\xff\ufffd",
		"a\nb\tc":             `a\nb\tc`,
		`a\b`:                 `a\b`,
	} {
		if got := Plain(text, false); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := Plain("a\nb\tc\r", true); got != "a\nb\tc\\r" {
		t.Errorf("with lines: %q", got)
	}
}

func TestNothingHostileIsWritten(t *testing.T) {
	t.Parallel()
	for _, colors := range []bool{false, true} {
		for _, text := range hostile {
			var out bytes.Buffer
			w := &Writer{To: &out, Colors: colors}
			in := "before " + text + " after\n"
			if n, err := w.Write([]byte(in)); n != len(in) || err != nil {
				t.Fatal(n, err)
			}
			bad := func(r rune) bool {
				return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028')
			}
			if got := out.String(); strings.ContainsFunc(got, bad) || strings.Contains(got, text) ||
				!strings.HasPrefix(got, "before \\") || !strings.HasSuffix(got, " after\n") {
				t.Errorf("colours %t: %q became %q", colors, text, got)
			}
		}
	}
}

func TestColorsPassIfAllowed(t *testing.T) {
	t.Parallel()
	const text = "\x1b[32mok\x1b[0m \x1b[91;2mno\x1b[m\n"
	var out bytes.Buffer
	w := &Writer{To: &out, Colors: true}
	if _, err := w.Write([]byte(text)); err != nil || out.String() != text {
		t.Errorf("%q, %v", &out, err)
	}
	out.Reset()
	w.Colors = false
	if _, err := w.Write([]byte(text)); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q, %v", &out, err)
	}
	w.To = failing{}
	if n, err := w.Write([]byte(text)); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("%d, %v", n, err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }
